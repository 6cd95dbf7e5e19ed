#!/usr/bin/env bash
# A whole site behind the client, with the tunnel as its way out:
#
#   host ── lan ── client ── c1, c2 ── anchor ── s0 ── server
#
# The anchor is the world: it has 8.8.8.8 and 2606:4700::8, and 192.0.2.9 for somebody who reaches
# the client by its own links. What is there before and after is compared: rules, routes, tables,
# settings. `--brief` leaves out what is long or needs more programs. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

world=8.8.8.8 world6=2606:4700::8 stranger=192.0.2.9
host=marline-lab-$$-h

dark=90 brief=
case ${1:-} in
--dark) dark=$2 brief=yes ;;
--brief) dark=3 brief=yes ;;
-h | --help)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
'') ;;
*) echo "usage: lab/site.sh [--brief | --dark SECONDS]" >&2 && exit 2 ;;
esac

needs ping curl nft python3
[[ -n $brief ]] || needs traceroute dig iperf3 ssh ssh-keygen /usr/sbin/sshd ffmpeg ffprobe srt-live-transmit
build
trap 'ip netns del $host 2>/dev/null; clean_up' EXIT

# Both links have a default route, as DSL and LTE do; the server has one.
routed
ip netns add "$host"
ip -n "$host" link set lo up
ip link add h0 netns "$host" type veth peer name lan netns "$client"
for words in "$host h0 2" "$client lan 1"; do
    read -r side device number <<<"$words"
    ip -n "$side" address add "192.168.77.$number/24" dev "$device"
    ip -n "$side" address add "fd0a::$number/64" dev "$device" nodad
    ip -n "$side" link set "$device" up
done
ip -n "$host" route add default via 192.168.77.1
ip -n "$host" -6 route add default via fd0a::1
for number in 1 2; do
    ip -n "$client" route add default via "10.201.$number.1" dev "c$number" metric "$number"
done
ip -n "$server" route add default via 10.201.0.1
ip -n "$server" address add fd01::2/64 dev s0 nodad
ip -n "$anchor" address add fd01::1/64 dev a0 nodad
ip -n "$server" -6 route add default via fd01::1
for address in $world $world6 $stranger; do
    ip -n "$anchor" address add "$address" dev lo
done
echo hello >"$folder/page"
begin "$anchor" web python3 -m http.server 80 --bind :: --directory "$folder"
cat >"$folder/echo.py" <<'TEXT'
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7))
while True:
    data, who = s.recvfrom(65535)
    s.sendto(data, who)
TEXT
for address in $world $world6; do
    begin "$anchor" "echo" python3 "$folder/echo.py" "$address"
done
# Somebody's shell at the client's own addresses.
begin "$client" shell python3 -m http.server 22 --bind :: --directory "$folder"

# All that a tunnel may change, but what counts packets.
snapshot() {
    local side
    for side in $client $server; do
        ip -n "$side" rule
        ip -n "$side" -6 rule
        ip -n "$side" route show table all
        ip -n "$side" -6 route show table all | sed 's/ expires [0-9]*sec//; /fe80::\|ff00::\|anycast/d'
        ip netns exec "$side" nft list ruleset
        ip netns exec "$side" sh -c 'cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/*/forwarding \
            /proc/sys/net/ipv6/conf/*/accept_ra' | sort | uniq -c
    done
}

# A world in which nobody has thought of a tunnel: Docker's chains, and an operator's.
firewall() {
    ip netns exec "$server" nft -f - <<'TEXT'
table ip filter {
    chain DOCKER { }
    chain FORWARD {
        type filter hook forward priority filter; policy drop;
        oifname "docker0" ct state established,related accept
        oifname "docker0" jump DOCKER
        iifname "docker0" oifname != "docker0" accept
        iifname "docker0" oifname "docker0" accept
    }
}
table inet careful {
    chain forward { type filter hook forward priority filter; policy drop; ct state established,related accept; }
}
TEXT
}
firewall

# Until the kernel has found that nobody else has its link-local addresses.
until [[ -z $(for side in $client $server $anchor $host; do ip -n "$side" -6 address show tentative; done) ]]; do
    sleep 0.1
done
snapshot >"$folder/before"

setup=gateway routes=(--tun-route 0.0.0.0/0 --tun-route ::/0) server_more=()
start() {
    begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
        --control off --tun=tun-s --tun-setup --tun-pool 10.77.0.0/24,fd77::/64 "${server_more[@]}"
    server_pid=${running[-1]}
    await server.out marline://
    begin "$client" client "$marline" client --identity client --server "$(head -1 "$folder/server.out")" \
        --path c1 --path c2 --control off --tun=tun-c "--tun-setup=$setup" "${routes[@]}"
    client_pid=${running[-1]}
    await client.err 'packets of up to'
    sleep 0.5
}

lan() { ip netns exec "$host" timeout 20 "$@"; }

# So many datagrams of this size are echoed to the host behind the client.
datagrams() {
    lan python3 - "$1" "$2" <<'TEXT'
import socket, sys
where, size = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if ":" in where else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
for n in range(20):
    # The first one may only teach this host the tunnel's size.
    for attempt in range(3):
        s.sendto(bytes([n]) * size, (where, 7))
        try:
            answer = s.recv(65535)
            break
        except socket.timeout:
            pass
    assert answer == bytes([n]) * size
TEXT
}

pings() { lan ping -qc 5 -i 0.2 -W 3 "$1" | sed -n 's/^rtt [^=]*= //p'; }

page() { [[ $(lan curl -sS --max-time 10 "http://$1/page") == hello ]]; }

# A stranger reaches the client by the address of one of its links.
reached() {
    ip netns exec "$anchor" curl -sS --max-time 3 --interface "$stranger" "http://10.201.$1.2:22/page" | grep -q hello
}

# Whether a command succeeds again within five seconds, or as many as `patience` says.
soon() {
    local begun=$EPOCHREALTIME
    until "$@" >/dev/null 2>&1; do
        if [[ $(bc <<<"$EPOCHREALTIME - $begun > ${patience:-5}") == 1 ]]; then return 1; fi
        sleep 0.2
    done
    printf '%.1f s' "$(bc <<<"$EPOCHREALTIME - $begun")"
}

one_page() { [[ $(ip netns exec "$host" curl -sS --max-time 1 "http://$world/page") == hello ]]; }

# Nothing is left, at most five seconds later.
same() {
    for _ in $(seq 50); do
        snapshot >"$folder/after"
        if cmp -s "$folder/before" "$folder/after"; then return; fi
        sleep 0.1
    done
    diff "$folder/before" "$folder/after" | head -5 | tr '\n' ' '
    return 1
}

everything() {
    # The server first looks for a translator of the network's (NAT64), which may take a resolver's
    # time.
    patience=15 soon lan ping -c 1 -W 1 "$world6" >/dev/null || true
    try 'ping' pings "$world"
    try 'ping, IPv6' pings "$world6"
    try 'a page' page "$world"
    try 'a page, IPv6' page "[$world6]"
    for size in 1400 4000; do
        try "datagrams of $size bytes" datagrams "$world" "$size"
        try "datagrams of $size, IPv6" datagrams "$world6" "$size"
    done
    try 'answered by the first link' reached 1
    try 'answered by the second link' reached 2
}

stage='a site' && start && everything
grep -q 'chain ip filter FORWARD' "$folder/server.err" || say 'says what it opened' 'FAILED: nothing'

stage='a path is cut'
ip -n "$anchor" link set a1 down
try 'a page' soon one_page
ip -n "$anchor" link set a1 up

stage='others undo it'
ip netns exec "$server" sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
try 'forwarding, server' soon one_page
ip netns exec "$client" sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
try 'forwarding, client' soon one_page
ip netns exec "$client" nft flush ruleset
try 'flush ruleset, client' soon one_page
ip netns exec "$server" nft flush ruleset
try 'flush ruleset, server' soon one_page
firewall
try 'firewall loaded again' soon one_page

# A connection each way goes on when the paths are back, and not when TCP tries next.
stage="all dark for $dark s"
cat >"$folder/both.py" <<'TEXT'
# Sends 100 kB/s and prints when bytes came, to the second connection of a pair; `listen` is the
# world's end.
import socket, sys, threading, time
def send(s):
    while True:
        s.sendall(bytes(10_000))
        time.sleep(0.1)
def take(s, name):
    while s.recv(65536):
        print(name, time.time(), flush=True)
if sys.argv[1] == "listen":
    listener = socket.create_server(("8.8.8.8", 81))
    while True:
        s, _ = listener.accept()
        kind = s.recv(1)
        threading.Thread(target=send if kind == b"d" else take, args=(s,) if kind == b"d" else (s, "up")).start()
up, down = (socket.create_connection(("8.8.8.8", 81)) for _ in range(2))
up.sendall(b"u")
down.sendall(b"d")
threading.Thread(target=send, args=(up,), daemon=True).start()
take(down, "down")
TEXT
begin "$anchor" world python3 "$folder/both.py" listen
sleep 0.5
begin "$host" both python3 "$folder/both.py" talk
await both.out down
await world.out up
cut() { ip netns exec "$anchor" nft "$@"; }
cut add table inet dark
cut add chain inet dark forward '{ type filter hook forward priority 0; policy drop; }'
sleep "$dark"
back=$(date +%s.%N)
cut delete table inet dark
# When the next bytes came after that.
again() {
    for _ in $(seq 300); do
        if awk -v after="$back" '$2 > after { printf "%.1f s\n", $2 - after; exit ($2 - after > 2) } END { if (!NR) exit 1 }' \
            "$1" | grep .; then
            return "${PIPESTATUS[0]}"
        fi
        sleep 0.1
    done
    return 1
}
try 'a download goes on' again "$folder/both.out"
try 'an upload goes on' again "$folder/world.out"

stage='both end'
stop_one() {
    kill "-$1" "$2" 2>/dev/null || true
    wait "$2" 2>/dev/null || true
}
stop_one TERM "$client_pid"
stop_one TERM "$server_pid"
try 'nothing is left' same

stage='names'
resolv=/etc/netns/$client/resolv.conf
mkdir -p "${resolv%/*}"
printf 'nameserver 192.168.77.2\nsearch lan\n' >"$resolv"
cp "$resolv" "$folder/resolv"
named() { grep -q "^nameserver $1" "$resolv"; }
put_back() { cmp "$resolv" "$folder/resolv"; }
start
grep -q 'the name server 192.168.77.2 is reached by lan alone' "$folder/client.err" || say 'a resolver of one link' 'FAILED: unsaid'
stop_one TERM "$client_pid"
stop_one TERM "$server_pid"
routes+=(--tun-dns "$world")
start
try 'the tunnel'"'"'s resolver' named "$world"
printf 'nameserver 10.201.1.1\n' >"$resolv"
try 'somebody else writes it' soon named "$world"
cp "$resolv" "$folder/ours"
stop_one TERM "$client_pid"
grep -qx 'nameserver 10.201.1.1' "$resolv" || say 'put back' 'FAILED: it is not'
cp "$folder/resolv" "$resolv"
stop_one KILL "$server_pid"
start
stop_one KILL "$client_pid"
try 'put back after a crash' soon put_back
stop_one KILL "$server_pid"
try 'nothing is left' same
routes=(--tun-route 0.0.0.0/0 --tun-route ::/0)

stage='two sites'
far=10.50.0.9
ip -n "$anchor" address add "$far" dev lo
ip -n "$anchor" route add 192.168.77.0/24 via 10.201.0.2
# Routes of the operators' own to what the tunnel leads to: they are there again in the end.
ip -n "$client" route add 10.50.0.0/24 via 10.201.1.1 proto static
ip -n "$server" route add 192.168.77.0/24 via 10.201.0.1
snapshot >"$folder/before"
begin "$host" inside python3 -m http.server 80 --bind :: --directory "$folder"
server_more=(--allow-prefix "$key=192.168.77.0/24" --allow-target '*' --allow-target 10.50.0.0/24)
setup=on routes=(--tun-announce 192.168.77.0/24 --tun-route 10.50.0.0/24)
start
try 'a page behind the server' page "$far"
grep -q '^192.168.77.2 .*GET' <(sed 's/^::ffff://' "$folder/web.err") || say 'under its own address' 'FAILED: it is not'
outside() { ip netns exec "$anchor" curl -sS --max-time 5 --interface "$1" http://192.168.77.2/page | grep -q hello; }
try 'a page behind the client' outside "$far"
if outside "$stranger" 2>/dev/null; then say 'a stranger' 'FAILED: is let in'; fi
grep -q 'route `10.50.0.0/24 via 10.201.1.1 dev c1 proto static` gives way' "$folder/client.err" ||
    say 'a route of its own' 'FAILED: unsaid'
stop_one TERM "$client_pid"
stop_one TERM "$server_pid"
try 'nothing is left' same
ip -n "$anchor" route del 192.168.77.0/24
ip -n "$client" route del 10.50.0.0/24
ip -n "$server" route del 192.168.77.0/24
snapshot >"$folder/before"
server_more=() setup=gateway routes=(--tun-route 0.0.0.0/0 --tun-route ::/0)

stage='strict'
# What leaves the client or its site for the world by itself, and not in the tunnel.
watch() {
    begin "$anchor" leaks timeout 60 python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
s.bind(("a1", 0))
other = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
other.bind(("a2", 0))
import select
while True:
    for one in select.select([s, other], [], [])[0]:
        data, (_, kind, direction, *_) = one.recvfrom(2000)
        # To the world and not to the server: 8.8.8.8, 2606:4700::8.
        if data[16:20] == bytes([8, 8, 8, 8]) or data[24:26] == bytes([0x26, 6]):
            print("leak", data[:40].hex(), flush=True)
'
    sleep 0.5
}
leaks() {
    for side in $host $client; do
        ip netns exec "$side" ping -c 1 -W 1 "$world" || true
        ip netns exec "$side" ping -c 1 -W 1 "$world6" || true
        ip netns exec "$side" curl -sS --max-time 1 "http://$world/page" || true
    done >/dev/null 2>&1
    [[ ! -s $folder/leaks.out ]] || { head -1 "$folder/leaks.out"; return 1; }
}
closed() { ip netns exec "$client" nft list table inet marline_tun_c_strict; }
setup=gateway,strict routes=(--tun-route 0.0.0.0/0)
watch
# What would be seen of a leak.
if leaks >/dev/null; then say 'a leak is seen' 'FAILED: it is not'; fi
# A connection that is older than the table, to somebody who answers.
begin "$client" older python3 -u -c '
import socket, time
s = socket.create_connection(("8.8.8.8", 81))
while True:
    s.sendall(b"u")
    time.sleep(0.2)
'
sleep 1
# There is no server yet.
begin "$client" client "$marline" client --identity client --server "$(head -1 "$folder/server.out")" \
    --path c1 --path c2 --control off --tun=tun-c --tun-setup=$setup --tun-route 0.0.0.0/0
client_pid=${running[-1]}
await client.err 'dialling'
# The older connection has had its last word.
: >"$folder/leaks.out"
try 'no leak before a session' leaks
stop_one TERM "$client_pid"
start
: >"$folder/leaks.out"
try 'a page' page "$world"
try 'no leak while it runs' leaks
# A link that says that the world is its own network.
ip -n "$client" route add 8.0.0.0/8 dev c1 scope link
sleep 1
try 'no leak to a link of the world' leaks
ip -n "$client" route del 8.0.0.0/8 dev c1
ip -n "$client" rule flush protocol 109
try 'rules are there again' soon reached 2
try 'answered by the first link' reached 1
ip netns exec "$client" nft flush ruleset
try 'flush ruleset' soon closed
# Until then the older connection had its chance.
: >"$folder/leaks.out"
stop_one KILL "$client_pid"
try 'no leak after a crash' leaks
stop_one KILL "$server_pid"

setup=gateway routes=(--tun-route 0.0.0.0/0 --tun-route ::/0)
stage='both are killed'
start
try 'a page' page "$world"
stop_one KILL "$client_pid"
stop_one KILL "$server_pid"
try 'nothing is left' same

stage='started at once after that'
start
stop_one KILL "$client_pid"
stop_one KILL "$server_pid"
start
try 'a page' page "$world"
stop_one TERM "$client_pid"
stop_one TERM "$server_pid"
try 'nothing is left' same

if [[ -z $brief ]]; then
    source "$here/programs.sh"
    programs
fi

exit "$failed"
