# Storage that stops answering or is taken away under a run, and quota that is used up: in a guest, where the kernel has
# mapped devices and nothing of the host can be hurt.
#
# Usage: trouble.sh PROGRAM CASE…, with a disk of 2 GiB and one of 1 GiB. Prints each case below a line `== name`: what the
# program said, with which code it ended and after how many seconds, and what was left.
program=$1
shift
export HOME=/tmp/home NO_COLOR=1
mkdir -p $HOME /mnt/a /mnt/b
cd /tmp

serial() { for disk in /sys/block/vd*; do [ "$(cat $disk/serial)" != "$1" ] || echo /dev/${disk##*/}; done; }
first=$(serial disk-1) second=$(serial disk-2)
sectors=$(cat /sys/block/${first#/dev/}/size)
mapped=/dev/mapper/stops

# A mapped device that can be suspended, and one that cannot: a file system on each.
up() {
	dmsetup create stops --table "0 $sectors linear $first 0" && mkfs.ext4 -q -F $mapped && mount $mapped /mnt/a
	mkfs.xfs -q -f $second && mount ${1:+-o $1} $second /mnt/b
}
down() {
	umount -l /mnt/a /mnt/b 2>/dev/null
	dmsetup remove --retry --force stops 2>/dev/null
	rm -rf $HOME/.local
}
# ended PID: waits for a program, and says how it ended and how long that took.
ended() {
	begun=$SECONDS
	wait $1
	echo "code $?"
	echo "ended after $((SECONDS - begun)) s"
}
until_said() { for _ in $(seq 600); do grep -q "$1" said && return; sleep 0.1; done; echo "not said: $1"; }
left() { find /mnt/a /mnt/b -name '.stackrace-*' 2>&1 | sed 's/^/left: /'; }
load="random mode=write size=16MiB passes=0 time=300s"
cat >study.toml <<'END'
title = "A device that is taken away"
[factors]
place = ["/mnt/b", "/mnt/a"]
[[stack]]
dir = { path = "{place}" }
[[workload]]
name = "random writes"
random = { mode = "write", size = "16 MiB", access = "uniform", time = "2 s" }
[decide]
rounds-at-most = 3
at-most = "5 min"
until = "never"
END

# Waits until a round of the run is over.
one_round() {
	for _ in $(seq 1200); do
		grep -qs '"event":"round-finished"' $HOME/.local/state/stackrace/runs/*/log.jsonl && return
		sleep 0.1
	done
	echo "no round ended"
}

suspended() {
	up
	$program load /mnt/a $load >said 2>&1 &
	one=$!
	for _ in $(seq 600); do [ -n "$(find /mnt/a -name '.stackrace-*')" ] && break; sleep 0.1; done
	sleep 3
	dmsetup suspend --noflush --nolockfs stops
	sleep 1
	kill -INT $one
	until_said 'does not return'
	kill -INT $one
	ended $one
	cat said
	echo "-- clean while it hangs"
	timeout 60 $program clean
	echo "code $?"
	dmsetup resume stops
	sleep 2
	echo "-- clean after it answers"
	$program clean
	echo "code $?"
	left
	down
}

taken_away() {
	up
	$program run study.toml >said 2>&1 &
	one=$!
	one_round
	dmsetup wipe_table --force --noflush stops
	ended $one
	cat said
	echo "-- clean"
	$program clean
	echo "code $?"
	left
	down
}

quota() {
	up prjquota
	mkdir -m 777 /mnt/b/few
	xfs_quota -x -c 'project -s -p /mnt/b/few 42' -c 'limit -p bhard=8m 42' /mnt/b >/dev/null
	$program load /mnt/b/few random mode=write size=64MiB time=2s 2>&1
	echo "code $?"
	left
	umount /mnt/b
	mount -o uquota $second /mnt/b
	mkdir -m 777 /mnt/b/user
	xfs_quota -x -c 'limit -u bhard=8m ihard=40 1000' /mnt/b >/dev/null
	chmod 777 $HOME
	rm -rf $HOME/.local
	echo "-- blocks of a user"
	setpriv --reuid 1000 --clear-groups $program load /mnt/b/user random mode=write size=64MiB time=2s 2>&1
	echo "code $?"
	echo "-- files of a user"
	setpriv --reuid 1000 --clear-groups $program load /mnt/b/user files count=200 2>&1
	echo "code $?"
	left
	down
}

for case in "$@"; do
	printf '\n== %s\n' "$case"
	$case
done
