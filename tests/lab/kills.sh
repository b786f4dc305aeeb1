#!/bin/sh
# Kills the program with -9 right before and right after each command that it gives while one stack is
# raised, used and lowered, one run for each; then `stackrace clean` must leave nothing. The machines are
# ones on which nothing else makes loop devices, arrays, volumes, pools or replicas: guests of the lab.
# Usage: kills.sh PROGRAM BASE [--peer USER@HOST] STACK…
# A STACK is one of those below, BASE a directory on a disk. Of a stack over two machines, everything is
# killed at the first one's commands, and at the peer's what was started there; the peer answers commands
# over SSH, in which BASE/shims is what is looked into first.
set -u
program=$1 base=$2
shift 2
peer=
if [ "$1" = --peer ]; then
	peer=$2
	shift 2
	# To log in takes seconds under emulation: one line for all of it.
	export STACKRACE_SSH="${STACKRACE_SSH:-ssh} -o ControlMaster=auto -o ControlPersist=yes -o ControlPath=/run/kills"
fi
shims=$base/shims
mkdir -p "$shims"

# Asks a machine of the stack: the first, or its peer.
on() {
	case $1 in
	first) sh -c "$2" ;;
	peer) $STACKRACE_SSH "$peer" "$2" ;;
	esac
}

# Whatever the program changes something with, found where it would look for it, kills it in time. What
# only reads does not count: before and after it the machine is the same.
for tool in bcachefs blkdiscard chmod chown corosync dlm_controld dmsetup drbdadm exportfs ip losetup lvchange \
	lvconvert lvcreate lvremove mdadm mkfs.bcachefs mkfs.btrfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.f2fs mkfs.gfs2 \
	mkfs.xfs mount netatalk pvcreate pvremove rpc.mountd rpc.nfsd rpcbind smbd tc umount vgchange vgcreate \
	vgremove wipefs zfs zpool; do
	real=$(command -v "$tool") || continue
	cat >"$shims/$tool" <<SHIM
#!/bin/sh
# The system's own tools start each other, too: only what the program starts is counted.
case \$(readlink /proc/\$PPID/exe) in */stackrace*) ;; *) exec $real "\$@" ;; esac
case "\$* " in
*--no-act* | --list* | --examine* | --detail* | get\ * | list\ * | status\ * | route\ * | -o\ route\ * | show\ *) exec $real "\$@" ;;
esac
read -r n <$base/count
n=\$((n + 1))
echo \$n >$base/count
read -r at when <$base/at
read -r whom <$base/whom
end() {
	echo \$n "\${0##*/} \$*" >$base/killed
	case \$whom in
	parent) kill -9 \$PPID ;;
	*) pkill -9 -s \$whom ;;
	esac
}
[ \$n.\$when = "\$at".before ] && end "\$@" && exit 1
$real "\$@"
status=\$?
[ \$n.\$when = "\$at".after ] && end "\$@"
exit \$status
SHIM
	chmod 755 "$shims/$tool"
done
machines=first server=same
if [ -n "$peer" ]; then
	machines="first peer" server=peer
	on peer "mkdir -p $base"
	tar c -C "$base" shims | on peer "tar x -C $base" || exit 2
fi

loops() {
	echo "[[stack]]"
	echo "loop = { size = \"$1\", count = $2, laid-out = \"no\", direct-io = false }"
}
layer() {
	echo "[[stack]]"
	echo "$1"
}
stack() {
	case $1 in
	ext4) loops "64 MiB" 1 && layer 'ext4 = {}' ;;
	xfs) loops "400 MiB" 1 && layer 'xfs = {}' ;;
	f2fs) loops "128 MiB" 1 && layer 'f2fs = {}' ;;
	btrfs) loops "256 MiB" 2 && layer 'btrfs = { profile = "raid1" }' ;;
	bcachefs) loops "128 MiB" 2 && layer 'bcachefs = { replicas = 2 }' ;;
	gfs2) loops "256 MiB" 1 && layer 'gfs2 = {}' ;;
	md) loops "64 MiB" 3 && layer 'md = { raid = 5, degraded = true }' && layer 'ext4 = {}' ;;
	lvm) loops "128 MiB" 2 && layer 'lvm = { kind = "striped", snapshot = "present" }' && layer 'ext4 = {}' ;;
	thin) loops "128 MiB" 2 && layer 'lvm = { kind = "thin", snapshot = "present" }' && layer 'ext4 = {}' ;;
	cache) loops "128 MiB" 2 && layer 'lvm = { kind = "cache" }' && layer 'ext4 = {}' ;;
	volume-on-array) loops "64 MiB" 2 && layer 'md = { raid = 1 }' && layer 'lvm = {}' && layer 'ext4 = {}' ;;
	zpool) loops "128 MiB" 5 && layer 'zpool = { topology = "raidz1", special = 1, log = 1 }' && layer 'dataset = { compression = "lz4" }' ;;
	zvol) loops "128 MiB" 3 && layer 'zpool = { topology = "raidz1" }' && layer 'zvol = { size = "64 MiB" }' && layer 'ext4 = {}' ;;
	tmpfs) layer 'tmpfs = { size = "16 MiB" }' ;;
	nfs | smb | afp) loops "64 MiB" 1 && layer 'ext4 = {}' && layer "$1 = { server = \"$server\" }" ;;
	drbd) loops "64 MiB" 1 && layer 'drbd = { protocol = "C", delay = "1 ms" }' && layer 'ext4 = {}' ;;
	dlm) loops "256 MiB" 1 && layer 'drbd = { role = "dual" }' && layer 'gfs2 = { lock = "dlm", mounted-on = 2 }' ;;
	*) return 1 ;;
	esac
}

# What stands because of the program, or because it was forgotten. In a peer the program chooses the place.
places="-e $base${peer:+ -e .stackrace-}"
standing="
losetup --list --noheadings | grep -F $places
grep '^md' /proc/mdstat 2>/dev/null
dmsetup ls 2>/dev/null | grep -v 'No devices found'
[ -d /proc/spl ] && zpool list -H
grep -F $places /proc/mounts
grep -F $places /var/lib/nfs/etab 2>/dev/null
[ ! -d /sys/module/drbd ] || drbdsetup status | grep -v 'No currently configured DRBD found'
for daemon in smbd netatalk rpc.mountd corosync dlm_controld; do
	for pid in \$(pgrep -x \$daemon); do
		# What the program started has its environment.
		grep -q -s -a -F $shims /proc/\$pid/environ && echo \$daemon
	done
done
"
network='ip -o address | sed "s/ *valid_lft.*//"; tc qdisc'
for machine in $machines; do
	[ -z "$peer" ] || on "$machine" "$network" >"$base/network-$machine"
done
standing() {
	find "$base/store" -name '.stackrace*'
	[ -z "$peer" ] || on peer "find /root/.local $base -name '.stackrace-*' 2>/dev/null"
	for machine in $machines; do
		on "$machine" "$standing"
		[ -z "$peer" ] || on "$machine" "$network" | diff "$base/network-$machine" -
	done
}

# The program, first of a session of its own, by which all of it is found.
run() {
	PATH=$shims:$PATH setsid sh -c 'echo $$ >"$0/whom" && exec "$@"' "$base" \
		"$program" --store "$base/store" --quiet run "$base/study.toml" ${peer:+--peer "$peer"} >"$base/said" 2>&1
}
# Kills at the commands of one of the machines, until there is none left to kill at.
kill_at_commands_of() {
	kill=1 when=before
	while :; do
		rm -rf "$base/store"
		mkdir "$base/store"
		for machine in $machines; do
			never="never"
			[ "$machine" != "$1" ] || never="$kill $when"
			on "$machine" "rm -f $base/killed; echo 0 >$base/count; echo $never >$base/at; echo parent >$base/whom"
		done
		run
		status=$?
		on "$1" "cat $base/killed" >"$base/at-which" 2>/dev/null || break
		"$program" --store "$base/store" clean ${peer:+--peer "$peer"} >"$base/cleaned" 2>&1
		cleaned=$?
		left=$(standing)
		if [ $cleaned != 0 ] || [ -n "$left" ]; then
			echo "$name: killed $when command $(cat "$base/at-which") of $1, clean ended with $cleaned:"
			cat "$base/cleaned"
			echo "$left"
			exit 1
		fi
		case $when in
		before) when=after ;;
		after) kill=$((kill + 1)) when=before ;;
		esac
	done
	left=$(standing)
	if [ $status != 0 ] || [ -n "$left" ]; then
		echo "$name: it was not killed, and ended with $status:"
		cat "$base/said"
		echo "$left"
		exit 1
	fi
}

for name; do
	{
		stack "$name" || { echo "no stack is called $name" >&2 && exit 2; }
		printf '[[workload]]\nsequential = { mode = "write", size = "1 MiB" }\n'
		printf '[decide]\nrounds-at-most = 1\nat-most = "5 min"\nuntil = "never"\n'
	} >"$base/study.toml"
	read -r begun _ </proc/uptime
	commands=
	for killed_on in $machines; do
		kill_at_commands_of "$killed_on"
		commands="$commands${commands:+ and, of the peer, }$((kill - 1))"
	done
	read -r ended _ </proc/uptime
	echo "$name: killed before and after each of $commands commands, nothing was left ($((${ended%.*} - ${begun%.*})) s)"
done
