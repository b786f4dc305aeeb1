#!/bin/sh
# Turns a tree of packages into the guest's root file system, its kernel, and what the initramfs
# needs. Times are those of SOURCE_DATE_EPOCH. Usage: image.sh TREE OUT
set -eu
tree=$1 out=$2
while read -r address sum; do
	chroot "$tree" /usr/lib/apt/apt-helper download-file "$address" /tmp/pinned.deb "SHA256:$sum" >&2
	chroot "$tree" apt-get --quiet=2 install --yes --no-install-recommends /tmp/pinned.deb >&2 </dev/null
	rm "$tree/tmp/pinned.deb"
done <"${0%/*}/pinned"
release=$(sh "${0%/*}/kernel.sh" "$tree")
modules=$tree/usr/lib/modules/$release
# Drivers of hardware that no guest has.
for part in gpu media net/wireless net/ethernet infiniband staging iio input/touchscreen \
	scsi/aic7xxx scsi/qla2xxx scsi/lpfc isdn usb bluetooth hwmon platform mtd comedi; do
	rm -rf "$modules/kernel/drivers/$part"
done
rm -rf "$modules/kernel/sound"
chroot "$tree" depmod "$release"
chroot "$tree" dpkg-query --show --showformat '${Package} ${Version}\n' | LC_ALL=C sort >"$out/packages"
echo "$release" >"$out/release"
mv "$tree/boot/vmlinuz" "$out/vmlinuz"
mkdir "$out/boot"
cp "$tree/bin/busybox" "$out/boot/"
# Everything the root file system needs before it is there.
for name in virtio_pci virtio_blk loop squashfs overlay; do
	chroot "$tree" modprobe --set-version "$release" --show-depends "$name"
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r path; do
	cp "$tree$path" "$out/boot/"
	echo "${path##*/}" >>"$out/boot/modules"
done
mkdir -p "$tree/kit" "$tree/scratch"
rm -rf "$tree"/var/lib/apt/lists/* "$tree"/var/cache/apt/* "$tree"/var/log/* "$tree"/tmp/* \
	"$tree"/usr/share/doc "$tree"/usr/share/man "$tree"/usr/share/locale "$tree"/usr/share/info \
	"$tree"/usr/share/lintian "$tree"/var/cache/ldconfig/aux-cache "$tree"/var/cache/debconf/*-old
# Drawn at random when ZFS is installed; a guest makes its own of its number.
rm -f "$tree/etc/hostid"
# So are the keys of its SSH server; whoever starts one makes them (ssh-keygen -A).
rm -f "$tree"/etc/ssh/ssh_host_*
: >"$tree/etc/machine-id"
rm -f "$tree/var/lib/dbus/machine-id"
: >"$tree/etc/resolv.conf"
echo lab >"$tree/etc/hostname"
# The guest raises arrays and pools itself, when a stack says so.
ln -sf /dev/null "$tree/etc/udev/rules.d/64-md-raid-assembly.rules"
ln -sf /dev/null "$tree/etc/udev/rules.d/69-lvm.rules"
# What is mounted in the tree while it is worked on is not of it.
mksquashfs "$tree" "$out/root.squashfs" -quiet -no-progress -comp lz4 -noappend \
	-wildcards -e 'proc/*' 'sys/*' 'dev/*' 'run/*' >&2
