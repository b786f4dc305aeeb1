# Run by bash in a guest of the lab: NFS, which it serves itself, and CLIENTS clients, each in a network
# namespace of its own behind one bridge. What is printed comes in parts that begin with "== NAME".
stackrace() { /kit/stackrace --quiet "$@" 2>&1; }
part() { echo; echo "== $*"; }
export HOME=/root XDG_STATE_HOME=/root/state
ground=/run/ground clients=$(seq -f 'c%g' -s, "$CLIENTS")
mkdir -p $ground /srv/share /mnt/small /mnt/large
cd $ground || exit 1

# What is served: a file system in memory, so that the line and the clients are what counts.
truncate -s 512M disk && mkfs.ext4 -q disk && mount -o loop disk /srv/share || exit 1
ip link add br0 type bridge && ip addr add 10.78.0.1/16 dev br0 && ip link set br0 up || exit 1
mkdir -p /run/rpcbind /var/lib/nfs/sm /var/lib/nfs/sm.bak /var/lib/nfs/v4recovery
touch /var/lib/nfs/etab /var/lib/nfs/rmtab /var/lib/nfs/xtab
modprobe nfsd; mount -t nfsd nfsd /proc/fs/nfsd 2>/dev/null
rpcbind -w && exportfs -o rw,no_root_squash,no_subtree_check,fsid=0 10.78.0.0/16:/srv/share &&
  rpc.nfsd --grace-time 10 --lease-time 10 8 && rpc.mountd && echo Y >/proc/fs/nfsd/v4_end_grace || exit 1

# One machine for each client: its network, its mounts, its name, which tells clients of NFS 4 apart. It is
# there as long as the process in it.
cat >machine <<'MACHINE'
hostname $1
mount -t nfs -o vers=4.2,rsize=65536,wsize=65536 10.78.0.1:/ /mnt/small &&
  mount -t nfs -o vers=4.2,rsize=1048576,wsize=1048576 10.78.0.1:/ /mnt/large && echo $$ >/run/ground/$1.pid
exec sleep 100000
MACHINE
for number in $(seq "$CLIENTS"); do
  client=c$number
  ip netns add $client
  ip link add v$number type veth peer name eth0 netns $client
  ip link set v$number master br0 up
  ip -n $client addr add 10.78.$((1 + number / 250)).$((number % 250 + 1))/16 dev eth0
  ip -n $client link set eth0 up
  ip -n $client link set lo up
  nsenter --net=/run/netns/$client unshare --mount --uts sh machine $client </dev/null &>>machines &
  until [ -s $client.pid ]; do kill -0 $! || exit 1; sleep 0.1; done
done

# Stands in for ssh.
cat >ssh <<'SSH'
#!/bin/sh
while [ $# -gt 2 ]; do shift; done
exec nsenter --target $(cat /run/ground/$1.pid) --net --mount --uts --root sh -c "$2"
SSH
chmod +x ssh
export STACKRACE_SSH=$ground/ssh
with="--clients ssh:$clients"

# A study of both sizes. The line is declared: no card of a namespace says how fast it is.
study() {
  cat <<STUDY
title = "NFS requests of 64 KiB or 1 MiB for many clients?"
[factors]
requests = ["small", "large"]
[[stack]]
dir = { path = "/mnt/{requests}", line = "2.5 MB" }
[[workload]]
name = "$1"
$2
[decide]
rounds-at-most = $3
at-most = "30 min"
until = "never"
STUDY
}
newest() { ls -td /root/state/stackrace/runs/*/log.jsonl | head -n 1; }
# What of a run is looked at: complete trials, processes of the first one, skews in ns, what was said.
kept() {
  log=$(newest)
  echo "complete $(grep '"event":"trial"' "$log" | grep -c '"ended":{"state":"complete"}')"
  echo "processes $(grep '"event":"trial"' "$log" | head -n 1 | grep -o '"process":' | wc -l)"
  echo "skews $(grep -o '"skew_ns":[0-9]*' "$log" | cut -d: -f2 | sort -n | tr '\n' ' ')"
  echo "load $(cut -d' ' -f1-3 /proc/loadavg)"
}

part paced
study "paced random read" \
  'random = { mode = "read", size = "1 MiB", block-size = "4 KiB", access = "uniform", time = "500 ms", rate = 20 }' 5 >paced.toml
stackrace run paced.toml $with
echo "code $?"
kept

part line
tc qdisc add dev br0 root tbf rate 20mbit burst 32k latency 100ms
study "stream read" \
  'sequential = { mode = "read", size = "2 MiB", block-size = "256 KiB" }' 3 >line.toml
stackrace run line.toml $with
echo "code $?"
stackrace report last | grep -i 'network line' | head -n 4
kept
tc qdisc del dev br0 root

part slow
study "random read" \
  'random = { mode = "read", size = "1 MiB", block-size = "4 KiB", access = "uniform", time = "2 s" }' 4 >slow.toml
few=$(seq -f 'c%g' -s, 8)
# One client is further away than the others.
tc qdisc add dev v3 root netem delay 20ms
stackrace run slow.toml --clients ssh:$few
echo "code $?"
stackrace report last | tr '\n' ' ' | tr -s ' ' | grep -o '[^ ]* did [0-9.]* % of what the median client did'
kept
tc qdisc del dev v3 root

part killed
stackrace run slow.toml --clients ssh:$few --rounds 100 &
run=$!
until [ "$(grep -c '"event":"trial"' "$(newest)")" -ge 2 ] && [ "$(newest)" != "$log" ]; do
  kill -0 $run || break
  sleep 0.2
done
# What the login to this client began; its machine stays.
kill -9 $(pgrep -f 'agent serve' | while read -r worker; do
  [ "$(readlink /proc/$worker/ns/net)" = "$(readlink /proc/$(cat c5.pid)/ns/net)" ] && echo $worker
done)
wait $run
echo "code $?"
stackrace resume last --rounds 1
echo "code $?"
kept

part left
find /srv/share -mindepth 1 ! -name lost+found
pkill sleep
exit 0
