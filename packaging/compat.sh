#!/usr/bin/env bash
# Runs the last release's client against this server, and this client against the last release's
# server, over loopback:
#
#   packaging/compat.sh [REVISION]        the revision is a tag or a commit; that of packaging/last-release without one
#
# Each pair, over QUIC and over TLS on TCP: a page and 8 MB by SOCKS5, which must be the same bytes;
# datagrams by a UDP forward, there and back; a live entry; a service that the client publishes; and
# a configuration file that the older one has, which the newer must read. CARRIERS=quic leaves TLS
# out. OLD=FILE and NEW=FILE name programs that are built already. Needs python3 and curl.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in python3 curl; do
    command -v $program >/dev/null || { echo "SKIPPED: $program is not installed" >&2; exit 0; }
done
revision=${1:-$(grep -v '^#' packaging/last-release)}
folder=$(mktemp -d)
running=()
stop() {
    local pid _
    for pid in "${running[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    running=()
}
repository=$PWD
trap 'stop; cd "$repository"; rm -rf "$folder"; git worktree prune' EXIT
trap 'exit 130' INT TERM

old=${OLD:-} new=${NEW:-}
if [[ -z $old ]]; then
    git cat-file -e "$revision^{commit}" 2>/dev/null || { echo "SKIPPED: revision $revision is not in this clone" >&2; exit 0; }
    git worktree add --detach --quiet "$folder/tree" "$revision"
    (cd "$folder/tree" && CARGO_TARGET_DIR="$OLDPWD/target/compat" cargo build --release --locked -p marline-cli)
    old=$PWD/target/compat/release/marline
    git worktree remove --force "$folder/tree"
fi
if [[ -z $new ]]; then
    cargo build --release --locked -p marline-cli
    new=${CARGO_TARGET_DIR:-target}/release/marline
fi
old=$(realpath "$old") new=$(realpath "$new")
echo "old: $("$old" --version), $revision; new: $("$new" --version)"

cd "$folder"
export XDG_STATE_HOME=$folder/state XDG_RUNTIME_DIR=$folder/run
mkdir -p www run
head -c 8000000 /dev/urandom >www/large
echo hello >www/page
cat >echo.py <<'TEXT'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    data, who = s.recvfrom(65535)
    s.sendto(data, who)
TEXT
cat >ask.py <<'TEXT'
# Sends 20 datagrams and wants as many answers; says what is missing.
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
for number in range(20):
    s.sendto(b"%04d" % number + b"x" * 1000, ("127.0.0.1", int(sys.argv[1])))
    data, _ = s.recvfrom(65535)
    assert data[:4] == b"%04d" % number, data[:4]
TEXT
cat >take.py <<'TEXT'
# Takes 50 datagrams in order, which is what a live entry promises.
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.settimeout(10)
print("ready", flush=True)
for number in range(50):
    data, _ = s.recvfrom(65535)
    assert data[:4] == b"%04d" % number, (number, data[:4])
print("whole", flush=True)
TEXT
cat >send.py <<'TEXT'
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(50):
    s.sendto(b"%04d" % number + b"x" * 1000, ("127.0.0.1", int(sys.argv[1])))
    time.sleep(0.01)
TEXT
await() {
    for _ in $(seq 200); do
        grep -q -- "$2" "$1" 2>/dev/null && return
        sleep 0.1
    done
    echo "error: no \`$2\` in $1:" >&2
    cat ./*.err >&2
    return 1
}
begin() {
    local log=$1
    shift
    : >"$log.out"
    "$@" >"$log.out" 2>"$log.err" &
    running+=($!)
}
failed=0 pair=
try() {
    local what=$1 said
    shift
    if said=$("$@" 2>&1); then printf '%-34s %-30s ok\n' "$pair" "$what"; else
        printf '%-34s %-30s FAILED: %s\n' "$pair" "$what" "${said##*$'\n'}"
        failed=1
    fi
}
large() { curl -sS --max-time 60 --proxy socks5h://127.0.0.1:21080 http://127.0.0.1:28000/large | cmp - www/large; }
page() { [[ $(curl -sS --max-time 20 --retry 20 --retry-connrefused --retry-all-errors --retry-delay 1 "$@") == hello ]]; }
live() { begin take python3 take.py 26001 && await take.out ready && python3 send.py 26000 && await take.out whole; }

"$old" identity new server-key >/dev/null 2>&1
key=$("$new" identity new client-key 2>/dev/null)
both() {
    local server=$1 client=$2 carrier=$3
    begin web python3 -m http.server 28000 --bind 127.0.0.1 --directory www
    begin echo python3 echo.py 27000
    # The older one's words for all of it, in files, which both must read.
    cat >server.toml <<TEXT
listen = ["127.0.0.1:24433"]
identity = "server-key"
allow-client = ["$key"]
allow-target = ["127.0.0.0/8"]
allow-publish = ["$key=tcp:28443"]
live = ["udp://127.0.0.1:26001"]
control = "off"
TEXT
    begin server "$server" server --config server.toml
    await server.out marline://
    cat >client.toml <<TEXT
server = "$(head -1 server.out)"
identity = "client-key"
path = ["lo,carrier=$carrier,name=a", "127.0.0.1,carrier=$carrier,name=b"]
socks = "127.0.0.1:21080"
forward = ["udp:127.0.0.1:27001=127.0.0.1:27000"]
publish = ["tcp:28443=127.0.0.1:28000"]
live = ["udp://127.0.0.1:26000"]
control = "off"
TEXT
    begin client "$client" client --config client.toml
    try 'page by SOCKS5' page --proxy socks5h://127.0.0.1:21080 http://127.0.0.1:28000/page
    try '8 MB, the same bytes' large
    try 'datagrams there and back' python3 ask.py 27001
    try 'a live entry, in order' live
    try 'a published service' page http://127.0.0.1:28443/page
    stop
}
for carrier in ${CARRIERS:-quic tcp}; do
    pair="old client, new server, $carrier" && both "$new" "$old" $carrier
    pair="new client, old server, $carrier" && both "$old" "$new" $carrier
done
exit $failed
