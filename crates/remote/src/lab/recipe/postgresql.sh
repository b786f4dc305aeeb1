#!/bin/sh
# Packs PostgreSQL's programs, and the libraries of theirs that the image lacks. Usage: postgresql.sh TREE OUT
set -eu
tree=$1 out=$2
version=$(ls "$tree/usr/lib/postgresql")
layer=$tree/tmp/layer
mkdir "$layer"
for package in $(chroot "$tree" dpkg-query --show --showformat '${Package}\n'); do
	if grep -q "^$package " "${0%/*}/image-packages"; then
		continue
	fi
	case $package in
	# The compiler of queries is larger than all the rest, and optional.
	libllvm* | libz3-* | libperl*) continue ;;
	"postgresql-$version" | "postgresql-client-$version" | lib*) ;;
	*) continue ;;
	esac
	chroot "$tree" dpkg-query --listfiles "$package" | sed -n 's|^/\(.\)|\1|p' >"$tree/tmp/files"
	tar -C "$tree" --no-recursion -cf - -T "$tree/tmp/files" | tar -C "$layer" -xf -
done
# Without this file the server does without the compiler.
rm -rf "$layer/usr/lib/postgresql/$version/lib/llvmjit.so" "$layer/usr/lib/postgresql/$version/lib/bitcode" \
	"$layer/usr/share/doc" "$layer/usr/share/man" "$layer/usr/share/locale" "$layer/usr/share/lintian" \
	"$layer/usr/share/postgresql/$version/man" "$layer/etc" "$layer/var"
mksquashfs "$layer" "$out/postgresql.squashfs" -quiet -no-progress -comp lz4 -noappend -all-root >&2
chroot "$tree" dpkg-query --show --showformat '${Version}' "postgresql-$version" >"$out/postgresql"
