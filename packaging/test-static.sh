#!/usr/bin/env bash
# What a static program can do on a machine of its kind: packaging/test-static.sh TARGET [PROGRAM].
# Emulated by qemu-user-static where this machine is of another kind; then
#
#   * no library is asked for, it has at most 12 MB (6 MB: MAXIMUM=6000000), and on an empty root, as a user without
#     rights, it makes a key and serves;
#   * a client and a server, one of them emulated and then the other, over QUIC (not emulated: TLS, too): packaging/compat.sh;
#   * the vector kernels of GF(256) against the naive one: the tests of marline-fec. KERNELS=no leaves them out.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1
program=$(realpath "${2:-${CARGO_TARGET_DIR:-target}/$target/static/marline}")
kind=${target%%-*}
case $kind in armv7) qemu=qemu-arm-static ;; *) qemu=qemu-$kind-static ;; esac
runner=
if [[ $(uname -m) != "$kind" ]]; then
    command -v "$qemu" >/dev/null || { echo "SKIPPED: there is no $qemu: apt-get install qemu-user-static" >&2; exit 0; }
    runner=$(command -v "$qemu")
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
size=$(stat -c %s "$program")
echo "$target: $size bytes"
((size <= ${MAXIMUM:-12000000})) || { echo "error: that is too large" >&2; exit 1; }
if file -L "$program" 2>/dev/null | grep -q 'dynamically linked'; then
    echo "error: it is linked dynamically" >&2
    exit 1
fi

# A root with nothing in it but the program, and the emulator where one is needed.
if [[ $(id -u) == 0 ]]; then
    mkdir -p "$folder/root/data"
    install -m 755 "$program" "$folder/root/marline"
    [[ -z $runner ]] || install -m 755 "$runner" "$folder/root/runner"
    chown 64433 "$folder/root/data"
    inside() { chroot --userspec=64433:64433 "$folder/root" ${runner:+/runner} /marline "$@"; }
    inside identity new /data/identity >"$folder/key"
    inside server --identity /data/identity --allow-client "$(cat "$folder/key")" --listen 127.0.0.1:0 --control off \
        >"$folder/out" 2>"$folder/err" &
    pid=$!
    for _ in $(seq 300); do grep -qs marline:// "$folder/out" && break || sleep 0.1; done
    pkill -TERM -P $pid 2>/dev/null || kill $pid 2>/dev/null || true
    wait $pid || true
    grep -q marline:// "$folder/out" || { cat "$folder/err" >&2; exit 1; }
    echo "serves on an empty root"
fi

printf '#!/bin/sh\nexec %s %s "$@"\n' "$runner" "$program" >"$folder/emulated"
chmod +x "$folder/emulated"
here=${NATIVE:-${CARGO_TARGET_DIR:-target}/release/marline}
[[ -x $here ]] || { cargo build --release --locked -p marline-cli; here=${CARGO_TARGET_DIR:-target}/release/marline; }
# TCP_INFO of qemu-user has four bytes, and who asks for it ends: sessions over TCP are tried on
# real machines.
if [[ -n $runner ]]; then export CARRIERS=quic; fi
OLD=$folder/emulated NEW=$here packaging/compat.sh

if [[ ${KERNELS:-yes} == yes ]]; then
    name=$(tr a-z- A-Z_ <<<"$target")
    if [[ -n $runner ]]; then export "CARGO_TARGET_${name}_RUNNER=$runner"; fi
    cargo zigbuild --version >/dev/null
    cargo-zigbuild test --locked --target "$target" -p marline-fec --lib gf256
fi
