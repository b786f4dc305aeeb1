# Run by bash in node1 of guests of the lab, before what follows: how it asks the others over SSH, which
# `stackrace::testing::over_ssh` has made possible.
export HOME=/root STACKRACE_SSH='ssh -o StrictHostKeyChecking=accept-new -o ConnectTimeout=300'
