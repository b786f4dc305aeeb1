#!/bin/sh
# Compiles recorder.c for each architecture: clang, llvm-strip and the headers of libbpf (Debian: clang llvm libbpf-dev).
# Usage: build.sh DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for arch in x86 arm64; do
	out="$1/recorder-$arch.o"
	clang -O2 -g -Wall -Wno-unused-parameter -Wno-missing-declarations -target bpf "-D__TARGET_ARCH_$arch" \
		-I"/usr/include/$(uname -m)-linux-gnu" "-ffile-prefix-map=$here=." -fdebug-compilation-dir=. \
		-c "$here/recorder.c" -o "$out"
	llvm-strip -g "$out"
done
