#!/bin/sh
# Makes disk images of systems that are not the lab's own, for the tests of `lab add`:
#   debian.qcow2  Debian with its own kernel, systemd and OpenSSH
#   busybox.img   a kernel, BusyBox and dropbear, and nothing else
#   silent.img    the same without dropbear
#   locked.img    the same where no user has a key
# and the key that both let in, `key`. All in one directory, which is given.
#
# Needs root, and: apt install mmdebstrap syslinux mtools dosfstools fdisk qemu-utils cpio busybox-static
#                              dropbear-bin openssh-client e2fsprogs
set -eu
out=$1
# Where Debian keeps them; SYSLINUX names another place.
mbr=${SYSLINUX:-/usr/lib/syslinux}/mbr/mbr.bin
[ -f "$mbr" ] || { echo "needs $mbr: apt install syslinux-common" >&2; exit 1; }
mkdir -p "$out"
cd "$out"
here=$(pwd)
work=$here/work
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
[ -f key ] || ssh-keygen -q -t ed25519 -N '' -f key

mmdebstrap --quiet --mode=root --variant=minbase --aptopt='APT::Install-Recommends "false"' \
    --include=linux-image-cloud-amd64,systemd-sysv,udev,openssh-server,iproute2,kmod,e2fsprogs,initramfs-tools \
    bookworm "$work/debian" http://deb.debian.org/debian
root=$work/debian

# A disk that a BIOS starts: SYSLINUX in a FAT partition with a kernel, and what else is given after that.
# disk FILE MIB WORDS: kernel and initrd in the directory `boot`.
disk() {
    truncate -s "$2M" "$1"
    printf 'label: dos\n2048,131072,e,*\n133120,,83\n' | sfdisk -q "$1"
    mkfs.fat --offset 2048 -F 16 "$1" 65536 >/dev/null
    printf 'DEFAULT it\nPROMPT 0\nLABEL it\n  KERNEL vmlinuz\n  INITRD initrd\n  APPEND console=ttyS0 panic=-1 %s\n' "$3" >"$work/boot/syslinux.cfg"
    mcopy -i "$1@@1M" "$work/boot/vmlinuz" "$work/boot/initrd" "$work/boot/syslinux.cfg" ::
    syslinux --install --offset 1048576 "$1"
    dd if="$mbr" of="$1" conv=notrunc status=none
}

# Debian: any network card asks for an address, and root comes in with the key.
mkdir -p "$root/root/.ssh" "$work/boot"
cp key.pub "$root/root/.ssh/authorized_keys"
chmod 700 "$root/root/.ssh"
printf '[Match]\nName=e*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/any.network"
chroot "$root" systemctl -q enable systemd-networkd ssh
echo own >"$root/etc/hostname"
mkdir -p "$root/srv/a" "$root/srv/b"
cp "$root"/boot/vmlinuz-* "$work/boot/vmlinuz"
cp "$root"/boot/initrd.img-* "$work/boot/initrd"
rm -f "$root"/boot/initrd.img-*
disk "$work/debian.raw" 1600 "root=/dev/vda2 rw quiet"
mkfs.ext4 -q -F -d "$root" -E offset=68157440 "$work/debian.raw" 1500M
qemu-img convert -f raw -O qcow2 "$work/debian.raw" debian.qcow2

# BusyBox: everything in the archive that the kernel unpacks first.
tree=$work/busybox
mkdir -p "$tree/bin" "$tree/dev" "$tree/proc" "$tree/sys" "$tree/tmp" "$tree/etc/dropbear" "$tree/root/.ssh" \
    "$tree/srv/a" "$tree/srv/b" "$tree/modules" "$tree/lib/x86_64-linux-gnu" "$tree/lib64"
cp "$(command -v busybox)" "$tree/bin/busybox"
for applet in $(busybox --list); do
    [ "$applet" = busybox ] || ln -s busybox "$tree/bin/$applet"
done
cp "$(command -v dropbear)" "$tree/bin/dropbear"
# With the libraries that it is linked to.
ldd "$(command -v dropbear)" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$tree$(dirname "$library")"
    cp -L "$library" "$tree$library"
done
release=$(ls "$root/lib/modules")
for module in virtio_net virtio_pci virtio_blk; do
    chroot "$root" modprobe --set-version "$release" --show-depends "$module"
done | sed -n 's/^insmod //p' | while read -r file; do
    # In this order each finds what it needs.
    cp "$root$file" "$tree/modules/$(basename "$file")"
    echo "insmod /modules/$(basename "$file")" >>"$tree/modules/load"
done
cp key.pub "$tree/root/.ssh/authorized_keys"
chmod 700 "$tree/root" "$tree/root/.ssh"
chmod 1777 "$tree/tmp"
echo 'root::0:0:root:/root:/bin/sh' >"$tree/etc/passwd"
echo '/bin/sh' >"$tree/etc/shells"
cat >"$tree/init" <<'END'
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts pts /dev/pts
sh /modules/load 2>/dev/null
ifconfig lo 127.0.0.1
ifconfig eth0 10.0.2.15 netmask 255.255.255.0
case $(cat /proc/cmdline) in
*silent*) exec sleep 100000 ;;
*locked*) rm /root/.ssh/authorized_keys ;;
esac
exec dropbear -F -R -E
END
chmod 755 "$tree/init"
(cd "$tree" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/boot/initrd"
disk busybox.img 80 "rdinit=/init quiet"
for kind in silent locked; do
    disk "$kind.img" 80 "rdinit=/init quiet $kind"
done
