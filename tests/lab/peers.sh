# Run by bash in node1 of three guests of the lab, after ssh.sh.
# What is printed comes in parts that begin with "== NAME".
b=root@10.77.0.2 c=root@10.77.0.3
stackrace() { /kit/stackrace --quiet "$@" 2>&1; }
part() { echo; echo "== $*"; }

# One round of what is said.
study() {
  { cat; printf '[decide]\nrounds-at-most = 1\nat-most = "60 min"\nuntil = "never"\n'; } > "$1.toml"
}

cd /root || exit 1
study drbd <<'STUDY'
title = "one device on two machines"
[factors]
protocol = ["A", "C"]
[[stack]]
loop = { size = "64 MiB", direct-io = false }
[[stack]]
drbd = { protocol = "{protocol}" }
[[stack]]
ext4 = {}
[[workload]]
files = { count = 20, fsync = true }
STUDY

study shares <<'STUDY'
title = "what a peer serves"
[factors]
share = ["nfs", "smb"]
[[stack]]
loop = { size = "64 MiB", direct-io = false }
[[stack]]
ext4 = {}
[[stack]]
"{share}" = { server = "peer" }
[[workload]]
files = { count = 10 }
STUDY
study gfs2 <<'STUDY'
title = "one file system of two machines, loaded by both"
[[stack]]
loop = { size = "256 MiB", direct-io = false }
[[stack]]
drbd = { role = "dual" }
[[stack]]
gfs2 = { lock = "dlm", mounted-on = 2, load-from = 2 }
[[workload]]
files = { count = 10 }
STUDY

# Whatever stands on any of the machines, the copies of the program left out.
standing='losetup -a; grep stackrace /proc/mounts; drbdsetup status 2>/dev/null | grep role:
  find /root/.local -name ".stackrace-*"'
stands() {
  part "$*, stands"
  sh -c "$standing"
  for machine in $b $c; do $STACKRACE_SSH $machine "$standing" 2>/dev/null; done
}
# What a run put on record, but for the commands: a guest's agent says no more than 64 KiB.
kept() {
  log=$(ls -td /root/.local/state/stackrace/runs/*/log.jsonl | head -n 1)
  grep -E '"event":"(run-started|stack-set-up)"' "$log"
  echo "complete $(grep '"event":"trial"' "$log" | grep -c '"ended":{"state":"complete"}')"
}

part here and node2
stackrace run drbd.toml --peer $b
echo "code $?"
kept
stands here and node2

part node2 and node3
stackrace run drbd.toml --on $b --peer $c
echo "code $?"
kept
stands node2 and node3

for study in shares gfs2; do
  part $study
  stackrace run $study.toml --peer $b
  echo "code $?"
  kept | grep -o -E '"layer":"[^"]*"|^complete .*'
  stands $study
done

# Everything in node1, the one who keeps the run, or the line to the peer: killed while both have the
# device.
victims() {
  case $1 in
    all) pgrep -f '^(/kit/stackrace --quiet run|/proc/self/exe --store) ' ;;
    keeper) pgrep -f '^/kit/stackrace --quiet run ' ;;
    line) pgrep -f '^([^ ]*/)?ssh ' ;;
  esac
}
for victim in all line keeper; do
  part "$victim killed"
  stackrace run drbd.toml --peer $c &
  run=$!
  until drbdsetup status 2>/dev/null | grep -q role:Primary; do
    kill -0 $run || break
    sleep 0.2
  done
  kill -9 $(victims $victim)
  wait $run
  echo "code $?"
  # A guest whose coordinator has gone ends by itself.
  while [ -n "$(victims all)" ]; do sleep 1; done
  stands "$victim killed"
  part "$victim cleaned"
  stackrace clean; alone=$?
  stackrace clean --on $c; there=$?
  stackrace clean --peer $c; both=$?
  echo "codes $alone $there $both"
  stands "$victim cleaned"
done

part resumed
stackrace resume last
echo "code $?"
stands resumed
exit 0
