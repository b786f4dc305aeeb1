# Run by bash in node1 of guests of the lab, before what follows. They are made machines like any other,
# which node1 asks over SSH: what says that they are guests is taken from them, and sshd is started in the
# others by their agents. What they start has the path of node1.
export HOME=/root STACKRACE_SSH='ssh -o StrictHostKeyChecking=accept-new -o ConnectTimeout=300'

mkdir -p /root/.ssh
ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519 || exit 1
key=$(cat /root/.ssh/id_ed25519.pub)
rm -f /run/stackrace-lab
for node in $(grep -o '^10[.]77[.]0[.][2-9]' /etc/hosts); do
  exec 3<>"/dev/tcp/$node/7077"
  ready="rm -f /run/stackrace-lab; mkdir -p /root/.ssh /run/sshd; ssh-keygen -A; echo $key > /root/.ssh/authorized_keys; chmod -R go= /root/.ssh; HOME=/root /usr/sbin/sshd -o SetEnv=PATH=${SHIMS:+$SHIMS:}$PATH"
  printf '{"id":1,"do":"exec","argv":["sh","-c","%s"]}\n' "$ready" >&3
  head -n 1 <&3
  exec 3>&-
done

