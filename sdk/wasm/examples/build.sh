#!/bin/sh
# Compiles the modules in C with Debian's clang and lld: sdk/wasm/examples/build.sh [FOLDER].
set -eu
cd "$(dirname "$0")"
folder=${1:-../modules}
mkdir -p "$folder"
for source in *.c; do
    clang --target=wasm32 -std=c11 -O2 -Wall -Wextra -Werror -nostdlib -ffreestanding -I ../include \
        -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=16384 \
        -o "$folder/${source%.c}.wasm" "$source"
done
