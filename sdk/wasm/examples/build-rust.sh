#!/bin/sh
# Compiles the modules in Rust: sdk/wasm/examples/build-rust.sh FOLDER. RUSTC names another compiler; it
# needs the target wasm32-unknown-unknown: Debian's rustc has it in the package libstd-rust-dev-wasm32,
# rustup's by `rustup target add wasm32-unknown-unknown`.
set -eu
cd "$(dirname "$0")"
rustc=${RUSTC:-rustc}
folder=$1
mkdir -p "$folder"
# Without bulk memory operations: one of them could take any time, so WasmElement refuses them.
flags="--edition 2021 --target wasm32-unknown-unknown -C opt-level=3 -C panic=abort -C codegen-units=1 \
    -C target-cpu=mvp"
$rustc $flags --crate-type rlib --crate-name castanet_wasm_sdk ../rust/src/lib.rs \
    --out-dir "$folder"
for source in *.rs; do
    $rustc $flags --crate-type cdylib -C strip=symbols -C link-arg=-zstack-size=65536 \
        --extern castanet_wasm_sdk="$folder/libcastanet_wasm_sdk.rlib" \
        "$source" -o "$folder/${source%.rs}.wasm"
done
