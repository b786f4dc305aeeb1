#!/bin/sh
# Kills the program with -9 right before and right after each command that it gives while one stack is
# raised, used and lowered, one run for each; then `stackrace clean` must leave nothing. The machines are
# ones on which nothing else makes loop devices, arrays, volumes, pools or replicas: guests of the lab.
# Usage: CHANGES=… STANDING=… kills.sh PROGRAM BASE [--peer USER@HOST] NAME LAYERS…
# NAME is what a stack is called, LAYERS are its tables in TOML, BASE is a directory on a disk. CHANGES
# are the programs that change something, STANDING are lines that print what stands: each layer declares
# its own (`tried` in crates/layers/src/stack). Of a stack over two machines, everything is
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
for tool in blkdiscard chmod chown ip ln mkdir mount tc umount wipefs $CHANGES; do
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

# What stands because of the program, or because it was forgotten. In a peer the program chooses the place.
places="-e $base${peer:+ -e .stackrace-}"
standing="
places='$places'
# What the program started has its environment.
ours() {
	for pid in \$(pgrep -x \$1); do
		grep -q -s -a -F $shims /proc/\$pid/environ && echo \$1
	done
}
grep -F \$places /proc/mounts
$STANDING
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

while [ $# -gt 0 ]; do
	name=$1 layers=$2
	shift 2
	# What is laid out is written; what is only read then takes no other workload.
	{
		printf '%s' "$layers"
		printf '[[workload]]\nsequential = { mode = "read", size = "1 MiB" }\n'
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
