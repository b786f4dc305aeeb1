#!/bin/sh
# Puts the distribution's newest kernel into a tree, unpacked but not installed: no boot loader and
# no initramfs is wanted. Prints its release. Usage: kernel.sh TREE
set -eu
tree=$1
package=$(chroot "$tree" apt-cache depends linux-image-amd64 |
	sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
mkdir "$tree/tmp/kernel"
(cd "$tree/tmp/kernel" && chroot "$tree" sh -c "cd /tmp/kernel && apt-get --quiet=2 download $package" >&2)
dpkg-deb --extract "$tree"/tmp/kernel/*.deb "$tree/tmp/kernel"
# From Debian 13 on the package has its modules below /usr.
[ -d "$tree/tmp/kernel/lib" ] || ln -s usr/lib "$tree/tmp/kernel/lib"
release=$(ls "$tree/tmp/kernel/lib/modules")
# A guest whose processor is emulated need not unpack each module it loads.
find "$tree/tmp/kernel/lib/modules/" -name '*.ko.xz' -exec xz --decompress {} +
# Each module is signed. To check that takes an emulated processor 0.05 s, and nothing asks for it: the kernel
# loads modules without a signature, too. A signature ends with its length, 4 bytes, and this mark.
mark='~Module signature appended~'
find "$tree/tmp/kernel/lib/modules/" -name '*.ko' | while read -r module; do
	[ "$(tail -c 28 "$module")" = "$mark" ] || continue
	length=$(tail -c 32 "$module" | od -A n -N 4 -t u4 --endian=big)
	truncate --size=-$((length + 12 + 28)) "$module"
done
mkdir -p "$tree/usr/lib/modules"
rm -rf "$tree/usr/lib/modules/$release.image"
mv "$tree/tmp/kernel/boot/vmlinuz-$release" "$tree/boot/vmlinuz"
if [ -d "$tree/usr/lib/modules/$release" ]; then
	cp -a "$tree/tmp/kernel/lib/modules/$release/." "$tree/usr/lib/modules/$release/"
else
	mv "$tree/tmp/kernel/lib/modules/$release" "$tree/usr/lib/modules/"
fi
rm -rf "$tree/tmp/kernel"
echo "$release"
