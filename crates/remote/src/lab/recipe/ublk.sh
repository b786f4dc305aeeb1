#!/bin/sh
# Builds the driver ublk for the newest kernel of a distribution that leaves it out: from the distribution's own
# source of that kernel, with the compiler the kernel was built with. Usage: ublk.sh TREE OUT
set -eu
tree=$1 out=$2
release=$(chroot "$tree" apt-cache depends linux-image-amd64 |
	sed -n 's/^ *Depends: linux-image-\([0-9].*\)$/\1/p' | head -n 1)
name=linux-source-$(echo "$release" | cut -d . -f 1,2)
work=$tree/tmp/ublk
mkdir "$work"
chroot "$tree" apt-get --quiet=2 install --yes --no-install-recommends "linux-headers-$release" >&2
chroot "$tree" sh -c "cd /tmp/ublk && apt-get --quiet=2 download $name" >&2
has=$(chroot "$tree" dpkg-query --show --showformat '${Version}' "linux-headers-$release")
source=$(dpkg-deb --field "$work"/*.deb Version)
if [ "$source" != "$has" ]; then
	echo "the kernel is $has, its source $source: try again when the distribution has both" >&2
	exit 1
fi
dpkg-deb --extract "$work"/*.deb "$work"
tar -xJf "$work/usr/src/$name.tar.xz" -C "$work" --strip-components=3 "$name/drivers/block/ublk_drv.c"
echo 'obj-m := ublk_drv.o' >"$work/Makefile"
chroot "$tree" make --silent -C "/lib/modules/$release/build" M=/tmp/ublk modules >&2
chroot "$tree" strip --strip-debug /tmp/ublk/ublk_drv.ko
cp "$work/ublk_drv.ko" "$out/"
echo "$release" >"$out/ublk"
