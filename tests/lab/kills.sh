#!/bin/sh
# Kills the program with -9 right before and right after each command that it gives while one stack is
# raised, used and lowered, one run for each; then `stackrace clean` must leave nothing. The machine is one on
# which nothing else makes loop devices, arrays, volumes, pools or replicas: a guest of the lab.
# Usage: kills.sh PROGRAM BASE STACK…; a STACK is one of those below, BASE a directory on a disk.
set -u
program=$1 base=$2
shift 2
shims=$base/shims
count=$base/count at=$base/at
mkdir -p "$shims"

# Whatever the program changes something with, found where it would look for it, kills it in time. What
# only reads does not count: before and after it the machine is the same.
for tool in bcachefs blkdiscard chmod chown dmsetup drbdadm exportfs ip losetup lvchange lvconvert lvcreate \
	lvremove mdadm mkfs.bcachefs mkfs.btrfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.f2fs mkfs.gfs2 mkfs.xfs mount \
	netatalk pvcreate pvremove rpc.mountd rpc.nfsd rpcbind smbd tc umount vgchange vgcreate vgremove wipefs \
	zfs zpool; do
	real=$(command -v "$tool") || continue
	cat >"$shims/$tool" <<SHIM
#!/bin/sh
# The system's own tools start each other, too: only what the program starts is counted.
[ "\$(cat /proc/\$PPID/comm 2>/dev/null)" = "${program##*/}" ] || exec $real "\$@"
case "\$* " in
*--no-act* | --list* | --examine* | --detail* | get\ * | list\ * | status\ * | route\ * | show\ *) exec $real "\$@" ;;
esac
read -r n <$count
n=\$((n + 1))
echo \$n >$count
read -r at when <$at
[ \$n.\$when = "\$at".before ] && kill -9 \$PPID && exit 1
$real "\$@"
status=\$?
[ \$n.\$when = "\$at".after ] && kill -9 \$PPID
exit \$status
SHIM
	chmod 755 "$shims/$tool"
done

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
	nfs) loops "64 MiB" 1 && layer 'ext4 = {}' && layer 'nfs = { server = "same" }' ;;
	smb) loops "64 MiB" 1 && layer 'ext4 = {}' && layer 'smb = { server = "same" }' ;;
	afp) loops "64 MiB" 1 && layer 'ext4 = {}' && layer 'afp = { server = "same" }' ;;
	*) return 1 ;;
	esac
}

# What stands because of the program, or because it was forgotten.
standing() {
	losetup --list --noheadings | grep -F "$base"
	grep '^md' /proc/mdstat 2>/dev/null
	dmsetup ls 2>/dev/null | grep -v 'No devices found'
	[ -d /proc/spl ] && zpool list -H
	grep -F "$base" /proc/mounts
	for daemon in smbd netatalk rpc.mountd; do
		for pid in $(pgrep -x "$daemon"); do
			# What the program started has its environment.
			grep -q -a -F "$shims" "/proc/$pid/environ" && echo "$daemon"
		done
	done
	find "$base/store" -name '.stackrace*'
}

for name; do
	{
		stack "$name" || { echo "no stack is called $name" >&2 && exit 2; }
		printf '[[workload]]\nsequential = { mode = "write", size = "1 MiB" }\n'
		printf '[decide]\nrounds-at-most = 1\nat-most = "5 min"\nuntil = "never"\n'
	} >"$base/study.toml"
	kill=1 when=before
	read -r begun _ </proc/uptime
	while :; do
		rm -rf "$base/store"
		mkdir "$base/store"
		echo 0 >"$count"
		echo $kill $when >"$at"
		PATH=$shims:$PATH "$program" --store "$base/store" --quiet run "$base/study.toml" >"$base/said" 2>&1
		status=$?
		[ $status = 137 ] || break
		if ! "$program" --store "$base/store" clean >"$base/cleaned" 2>&1 || [ -n "$(standing)" ]; then
			echo "$name: killed $when command $kill, something is left:"
			cat "$base/cleaned"
			standing
			exit 1
		fi
		case $when in
		before) when=after ;;
		after) kill=$((kill + 1)) when=before ;;
		esac
	done
	if [ $status != 0 ] || [ -n "$(standing)" ]; then
		echo "$name: it was not killed, and ended with $status:"
		cat "$base/said"
		standing
		exit 1
	fi
	read -r ended _ </proc/uptime
	echo "$name: killed before and after each of $((kill - 1)) commands, nothing was left ($((${ended%.*} - ${begun%.*})) s)"
done
