#!/usr/bin/env bash
# The client on Windows, under wine: sessions over two paths by source address with a server of this
# system, over QUIC and then over TCP, and through them the proxy, forwards and a live entry; the
# client is asked and changed over its control pipe. Needs mingw-w64 (Debian:
# gcc-mingw-w64-x86-64), wine, curl and python3; traffic stays on loopback. WINDOWS=FILE and
# MARLINE=FILE name programs that are built already.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in wine x86_64-w64-mingw32-gcc curl python3; do
    command -v "$program" >/dev/null || { echo "error: there is no $program" >&2; exit 1; }
done
rustup target list --installed | grep -x x86_64-pc-windows-gnu >/dev/null || rustup target add x86_64-pc-windows-gnu
target=${CARGO_TARGET_DIR:-target}
if [[ -z ${WINDOWS:-} ]]; then
    cargo build --release --locked --target x86_64-pc-windows-gnu -p marline-cli --no-default-features
    WINDOWS=$target/x86_64-pc-windows-gnu/release/marline.exe
fi
windows=$(realpath "$WINDOWS")
marline=$(realpath "${MARLINE:-$target/release/marline}")

folder=$(mktemp -d)
running=()
# Wine's own server would go on for a while.
finish() {
    kill "${running[@]}" 2>/dev/null || true
    WINEPREFIX=$folder/wine wineserver -k 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
export WINEPREFIX=$folder/wine WINEDEBUG=-all
cd "$folder"
failed=0
# What is tried, and a command that says whether it holds.
try() {
    if "${@:2}" >tried 2>&1; then echo "ok      $1"; else failed=1 && echo "FAILED  $1: $(tail -n 3 tried)"; fi
}
# Waits half a minute for a line in a file.
await() {
    for _ in $(seq 300); do
        if grep -q -- "$2" "$1" 2>/dev/null; then return 0; fi
        sleep 0.1
    done
    echo "error: no \`$2\` in $1:" >&2
    tail -n 5 "$1" >&2
    return 1
}

# Rust takes random numbers from this library of Windows, which wine before 9.0 has not.
cat >prng.c <<'TEXT'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T count) { return SystemFunction036(to, count); }
TEXT
x86_64-w64-mingw32-gcc -shared -o bcryptprimitives.dll prng.c -ladvapi32
cp "$windows" marline.exe
windows=./marline.exe

try 'a key is made' wine "$windows" identity new client.key
key=$(wine "$windows" identity show client.key 2>/dev/null | tr -d '\r')
head -c 3000000 /dev/urandom >www.bin
mkdir www && mv www.bin www/
python3 -m http.server -b 127.0.0.1 -d www 18080 >/dev/null 2>&1 &
running+=($!)
"$marline" identity new server.key >/dev/null
"$marline" server --identity server.key --listen 127.0.0.1:14433 --advertise 127.0.0.1:14433 --allow-client "$key" --control "$folder/s.sock" \
    --allow-target 127.0.0.1 --live udp://127.0.0.1:16000 >server.out 2>server.err &
running+=($!)
await server.out marline://
# Is the number of active paths, as the command $2... says, $1?
paths() { "${@:2}" --json | python3 -c '
import json, sys
status = json.load(sys.stdin)
paths = [path for session in status["sessions"] for path in session["paths"] if path["state"] == "active"]
sys.exit(f"{len(paths)} paths are active" if len(paths) != int(sys.argv[1]) else 0)' "$1"; }
soon() { for _ in $(seq 100); do if "$@" 2>/dev/null; then return; fi; sleep 0.2; done; "$@"; }
same() { curl -fsS --max-time 30 "$@" -o got && cmp got www/www.bin; }
datagrams() { python3 - "$@" <<'TEXT'
import socket, sys, time
to, at, count = int(sys.argv[1]), int(sys.argv[2]), 200
got, sent = set(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.bind(("127.0.0.1", at))
taken.settimeout(0.005)
for number in range(count + 200):
    if number < count:
        sent.sendto(number.to_bytes(4, "big") * 300, ("127.0.0.1", to))
    try:
        got.add(taken.recv(2000))
    except TimeoutError:
        pass
print(f"{len(got)} of {count}")
sys.exit(len(got) < 0.99 * count)
TEXT
}
for carrier in quic tcp; do
    words=(--identity client.key --server "$(head -n 1 server.out)" --path "127.0.0.1,carrier=$carrier,name=a"
        --path "127.0.0.2,carrier=$carrier,name=b" --socks 127.0.0.1:11080 --forward tcp:127.0.0.1:17000=127.0.0.1:18080
        --forward udp:127.0.0.1:17001=127.0.0.1:17002 --live udp://127.0.0.1:15000)
    wine "$windows" client "${words[@]}" >client.out 2>client.err &
    client=$!
    running+=($client)
    try "$carrier: two paths, as the server sees them" soon paths 2 "$marline" status --control "$folder/s.sock"
    try "$carrier: two paths, as the client says" soon paths 2 wine "$windows" status
    try "$carrier: the proxy: SOCKS5" same --socks5-hostname 127.0.0.1:11080 http://127.0.0.1:18080/www.bin
    try "$carrier: the proxy: CONNECT" same --proxytunnel -x http://127.0.0.1:11080 http://127.0.0.1:18080/www.bin
    try "$carrier: a forward of TCP" same http://127.0.0.1:17000/www.bin
    try "$carrier: a forward of UDP" datagrams 17001 17002
    try "$carrier: a live entry" datagrams 15000 16000
    # A second one of this user's finds the first one's pipe.
    second() { ! timeout 60 wine "$windows" client "${words[@]:0:6}" --socks off 2>second.err && grep 'another instance is running' second.err; }
    try "$carrier: a second client is refused" second
    try "$carrier: a path is removed" wine "$windows" paths remove b
    try "$carrier: one is left, as the server sees it" soon paths 1 "$marline" status --control "$folder/s.sock"
    kill $client
    wait $client || true
done
exit "$failed"
