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
# The kernel looks up the name of every function that could be traced, among all names of a module: 4 s of an
# emulated processor. The places of tracing are no-ops already, so without the list nothing else is different.
for module in $(cd "$tree" && find "usr/lib/modules/$release/updates" -name '*.ko'); do
	chroot "$tree" objcopy --remove-section=__mcount_loc --remove-section=.rela__mcount_loc "/$module"
done
chroot "$tree" depmod "$release"
layer=$tree/tmp/layer/usr/lib/modules/$release
mkdir -p "$layer"
cp -a "$modules/updates" "$modules"/modules.* "$layer/"
mksquashfs "$tree/tmp/layer" "$out/zfs.squashfs" -quiet -no-progress -comp lz4 -noappend -all-root >&2
printf '%s\n%s\n' "$release" "$version" >"$out/zfs"
