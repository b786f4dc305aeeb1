#!/bin/sh
# Builds the ZFS modules for the guest's kernel in a tree of their own with the compiler the kernel
# was built with, and packs them with the module index that knows them. Usage: zfs.sh TREE OUT
set -eu
tree=$1 out=$2
release=$(sh "${0%/*}/kernel.sh" "$tree")
version=$(chroot "$tree" dpkg-query --show --showformat '${Version}' zfs-dkms)
module=$(ls "$tree/usr/src" | sed -n 's/^zfs-//p')
chroot "$tree" apt-get --quiet=2 install --yes --no-install-recommends "linux-headers-$release" >&2
modules=$tree/usr/lib/modules/$release
chroot "$tree" dkms install -m zfs -v "$module" -k "$release" >&2
# The headers of Debian 13 bring the kernel with them: its packed modules are here already, unpacked.
find "$modules/kernel" -name '*.ko.xz' -delete
find "$modules/updates" -name '*.ko.xz' -exec xz --decompress {} +
chroot "$tree" depmod "$release"
layer=$tree/tmp/layer/usr/lib/modules/$release
mkdir -p "$layer"
cp -a "$modules/updates" "$modules"/modules.* "$layer/"
mksquashfs "$tree/tmp/layer" "$out/zfs.squashfs" -quiet -no-progress -comp lz4 -noappend -all-root >&2
printf '%s\n%s\n' "$release" "$version" >"$out/zfs"
