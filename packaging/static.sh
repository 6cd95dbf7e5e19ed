#!/usr/bin/env bash
# Builds static programs: packaging/static.sh [TARGET...], all three of them without a target.
# C is compiled by zig (`pip install ziglang cargo-zigbuild`), which has a compiler for each of
# them; Rust's own musl and lld link. The same source, compiler and zig give the same bytes,
# wherever the source lies: paths are replaced in what is built. SMALL=yes builds the program of
# routers instead, without the simulator and its commands.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl armv7-unknown-linux-musleabihf)
for program in cargo-zigbuild rustup; do
    command -v $program >/dev/null || { echo "error: there is no $program: pip install ziglang cargo-zigbuild" >&2; exit 1; }
done

# The time of the last commit, for whatever writes one.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
export CARGO_INCREMENTAL=0
cargo_home=${CARGO_HOME:-$HOME/.cargo}
# Linked by Rust's own lld, which joins functions whose code is the same and packs relocations;
# zig's does neither.
export RUSTFLAGS="-C linker=rust-lld -C link-arg=--icf=all -C link-arg=--pack-dyn-relocs=relr"
RUSTFLAGS+=" --remap-path-prefix=$PWD=/marline --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$(rustc --print sysroot)=/rust"
export CFLAGS="-ffile-prefix-map=$PWD=/marline -ffile-prefix-map=$cargo_home=/cargo -g0"
profile=static words=()
if [[ ${SMALL:-no} == yes ]]; then
    profile=small words=(--no-default-features)
    # A panic ends it: nothing looks up how to unwind.
    RUSTFLAGS+=" -C link-arg=--no-eh-frame-hdr"
else
    # Makes the tables of unwinding a third shorter.
    RUSTFLAGS+=" -C force-frame-pointers=yes"
fi
for target in "${targets[@]}"; do
    flags=$RUSTFLAGS
    # Thumb instructions take a quarter less room.
    [[ $profile-$target != small-armv7* ]] || flags+=" -C target-feature=+thumb-mode"
    rustup target list --installed | grep -qx "$target" || rustup target add "$target"
    RUSTFLAGS=$flags cargo zigbuild --locked --profile "$profile" --target "$target" -p marline-cli --bin marline "${words[@]}"
    file=${CARGO_TARGET_DIR:-target}/$target/$profile/marline
    echo "$file: $(stat -c %s "$file") bytes, sha256 $(sha256sum <"$file" | cut -d ' ' -f 1)"
done
