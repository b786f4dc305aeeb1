#!/bin/sh
# Takes the hypervisor out of a package of the distribution, unpacked but not installed: no boot loader is
# wanted. Usage: hypervisor.sh TREE OUT PACKAGE
set -eu
tree=$1 out=$2 package=$3
mkdir "$tree/tmp/hypervisor"
(cd "$tree/tmp/hypervisor" && chroot "$tree" sh -c "cd /tmp/hypervisor && apt-get --quiet=2 download $package" >&2)
dpkg-deb --extract "$tree"/tmp/hypervisor/*.deb "$tree/tmp/hypervisor"
gzip --decompress --stdout "$tree"/tmp/hypervisor/boot/xen-*.gz >"$out/hypervisor"
rm -rf "$tree/tmp/hypervisor"
