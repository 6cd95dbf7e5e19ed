#!/usr/bin/env bash
# Paths as they are in the field: narrow ones, and such as become narrow while they carry. See lab/README.md.
set -euo pipefail
. "$(dirname "$0")/common.sh"

usage() {
    cat <<TEXT
Usage: lab/paths.sh [--batches] [start|shrink|beside]...

  start   a session comes up over a path that drops packets beyond 1280 to 1500 bytes in one direction
          or both and sends no ICMP, over IPv4 and IPv6; and finds what the path takes
  shrink  the same happens to a path that carries 4 MB/s, up and down
  beside  a narrow path and a wide one carry together; the wide one shrinks

  --batches  packets pass the middle in pieces of many (GSO), which it drops whole: virtual interfaces do that

MARLINE is the program [default: $marline]. Needs root, nft and python3.
TEXT
}

stages=() batches=
while (($#)); do
    case $1 in
    --batches) batches=1 ;;
    -h | --help) usage && exit 0 ;;
    start | shrink | beside) stages+=("$1") ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done
((${#stages[@]})) || stages=(start shrink beside)

needs nft python3
build
routed

# IPv6 beside it, in the same shape: fd42:1::/64, fd42:2::/64 and fd42::/64.
for wire in "$client c1 a1 1" "$client c2 a2 2" "$server s0 a0 0"; do
    read -r side near far number <<<"$wire"
    ip -n "$side" address add "fd42:$number::2/64" dev "$near" nodad
    ip -n "$anchor" address add "fd42:$number::1/64" dev "$far" nodad
done
ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
ip -n "$server" -6 route add fd42::/16 via fd42:0::1
for number in 1 2; do
    ip -n "$client" -6 route add fd42:0::/64 via "fd42:$number::1" dev "c$number" metric "$number"
    # What comes by a path leaves by a route of its own, so that its size is its own, too.
    ip -n "$anchor" rule add iif "a$number" lookup "10$number"
    ip -n "$anchor" -6 rule add iif "a$number" lookup "10$number"
done
# Segments leave one by one, as on a real interface: veth would carry a batch (GSO) on in one piece, and the middle would
# drop the short ones in it together with the long ones. `batches` leaves that so.
for end in "$client c1" "$client c2" "$server s0"; do
    [[ $batches ]] || ip -n "${end% *}" link set "${end#* }" gso_max_segs 1
done
# Nobody is told that a packet was too big.
ip netns exec "$anchor" nft -f - <<'TEXT'
table inet lab {
    chain out {
        type filter hook output priority 0;
        icmp type destination-unreachable drop
        icmpv6 type { destination-unreachable, packet-too-big } drop
    }
}
TEXT

# Path 1 or 2 takes IP packets of so many bytes from now on, towards the server and back. The routes of the anchor say
# so, and not its devices: those would also limit what comes in.
narrow() {
    local number=$1 there=$2 back=$3
    ip -n "$anchor" route replace 10.201.0.0/24 dev a0 mtu lock "$there" table "10$number"
    ip -n "$anchor" -6 route replace fd42:0::/64 dev a0 mtu lock "$there" table "10$number"
    ip -n "$anchor" route replace "10.201.$number.0/24" dev "a$number" src "10.201.$number.1" mtu lock "$back"
    ip -n "$anchor" -6 route replace "fd42:$number::/64" dev "a$number" metric 1 mtu lock "$back"
}

# A source and sink of 4 MB/s behind the server, and what asks it through SOCKS: how much came, and the longest time in
# which nothing did.
cat >flow.py <<'TEXT'
import socket, sys, threading, time

CHUNK, EVERY = 20_000, 0.005

def pour(to, seconds):
    begun = time.monotonic()
    for number in range(int(seconds / EVERY)):
        to.sendall(number.to_bytes(4, "big") * (CHUNK // 4))
        time.sleep(max(0.0, begun + (number + 1) * EVERY - time.monotonic()))
    to.shutdown(socket.SHUT_WR)

def drain(source):
    count, longest, last, whole = 0, 0.0, time.monotonic(), bytearray()
    while data := source.recv(65536):
        now = time.monotonic()
        longest, last, count = max(longest, now - last), now, count + len(data)
        whole += data
    for at in range(0, len(whole), CHUNK):
        if whole[at:at + CHUNK] != (at // CHUNK).to_bytes(4, "big") * (CHUNK // 4):
            sys.exit(f"other bytes came at {at} of {count}")
    return count, longest

def serve(link):
    way, seconds = link.makefile("rb", 0).readline().split()
    if way == b"down":
        pour(link, float(seconds))
    else:
        count, longest = drain(link)
        link.sendall(f"{count} {longest}\n".encode())
    link.close()

if sys.argv[1] == "serve":
    host = socket.create_server(("10.201.0.2", 7000))
    print("ready", flush=True)
    while True:
        threading.Thread(target=serve, args=(host.accept()[0],), daemon=True).start()

way, seconds, limit = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
link = socket.create_connection(("127.0.0.1", 1080))
link.sendall(b"\x05\x01\x00")
link.recv(2)
link.sendall(b"\x05\x01\x00\x01" + socket.inet_aton("10.201.0.2") + (7000).to_bytes(2, "big"))
if (answer := link.recv(10))[1]:
    sys.exit(f"SOCKS: {answer!r}")
link.settimeout(20)
link.sendall(f"{way} {seconds}\n".encode())
if way == "down":
    count, longest = drain(link)
else:
    pour(link, seconds)
    count, longest = link.makefile().readline().split()
    count, longest = int(count), float(longest)
if count != int(seconds / EVERY) * CHUNK:
    sys.exit(f"{count} bytes came of {int(seconds / EVERY) * CHUNK}")
if longest > limit:
    sys.exit(f"nothing came for {longest:.2f} s")
print(f"nothing came for {longest * 1000:.0f} ms at most")
TEXT
begin "$server" flow python3 flow.py serve
await flow.out ready
kept=("${running[@]}")

# Both ends, with paths over IPv4 or IPv6.
ends() {
    local family=$1 number address=10.201.0.2 listen=0.0.0.0
    shift
    if [[ $family == 6 ]]; then
        address='[fd42:0::2]' listen='[::]'
    fi
    local paths=()
    for number; do
        paths+=(--path "c$number,carrier=quic")
    done
    begin "$server" server "$marline" server --identity server --listen "$listen:4433" --advertise "$address" \
        --allow-client "$key" --control server.sock --allow-target 10.201.0.2
    await server.out marline://
    begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" \
        --control client.sock --socks 127.0.0.1:1080 "${paths[@]}"
    for number; do
        shows "c$number .*active" || return
    done
}

# Ends both, but not the source.
leave() {
    running=("${running[@]:${#kept[@]}}")
    stop
    running=("${kept[@]}")
}

# Waits until an end sends datagrams as long as IP packets of this size leave room for, or up to nine bytes less: headers
# and the seal take 66 bytes, or 86 over IPv6; to a client 8 less, as its packets carry no connection id.
finds() {
    local end=$1 row=$2 wanted=$(($3 - 66 - ($4 == 6 ? 20 : 0)))
    if [ "$end" = server ]; then wanted=$((wanted + 8)); fi
    for _ in $(seq 100); do
        found=$("$marline" status --json --control "$end.sock" 2>/dev/null | python3 -c "
import json, sys
paths = json.load(sys.stdin)['sessions'][0]['paths']
print(paths[$row].get('datagram_bytes') or 0)" 2>/dev/null) || found=0
        ((found <= wanted && found >= wanted - 9)) && echo "$found bytes" && return
        sleep 0.1
    done
    echo "$end: datagrams of $found bytes, not $wanted"
    return 1
}

flow() {
    within python3 flow.py "$@"
}

start() {
    local family there back case
    for family in 4 6; do
        for case in '1280 1280' '1300 1500' '1500 1300' '1400 1420' '1500 1500'; do
            read -r there back <<<"$case"
            stage="start, IPv$family, $there/$back"
            narrow 1 "$there" "$back"
            local begun=$EPOCHREALTIME
            ends $family 1
            try 'half a second down' flow down 0.5 1
            say 'session and that' "$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }')"
            try 'the client finds its size' finds client 0 "$there" $family
            try 'the server finds its size' finds server 0 "$back" $family
            leave
        done
    done
}

# The path shrinks two seconds after the flow began.
shrink() {
    local family way there back case
    for family in 4 6; do
        for case in '1300 1500' '1500 1300' '1300 1300'; do
            for way in down up; do
                read -r there back <<<"$case"
                stage="shrink, IPv$family, $there/$back"
                narrow 1 1500 1500
                ends $family 1
                finds client 0 1500 $family >/dev/null || true
                finds server 0 1500 $family >/dev/null || true
                (sleep 2 && narrow 1 "$there" "$back") &
                try "4 MB/s $way" flow "$way" 6 1
                wait $!
                # A direction that carries nothing has nothing to find it by.
                [[ $way == up ]] || try 'the server finds its size' finds server 0 "$back" $family
                [[ $way == down ]] || try 'the client finds its size' finds client 0 "$there" $family
                leave
            done
        done
    done
}

beside() {
    local way
    for way in down up; do
        stage="beside, 1280 and 1500"
        narrow 1 1280 1280
        narrow 2 1500 1500
        ends 4 1 2
        try "4 MB/s $way" flow "$way" 3 1
        stage="beside, 1500 becomes 1300"
        (sleep 2 && narrow 2 1300 1300) &
        try "4 MB/s $way" flow "$way" 6 1
        wait $!
        leave
    done
}

for part in "${stages[@]}"; do
    "$part"
done
exit $failed
