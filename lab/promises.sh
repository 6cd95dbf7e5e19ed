#!/usr/bin/env bash
# What docs/TUNNEL.md promises beside speed: who gets which address, who may reach what, what a budget does, what
# happens to packets that are too big, and that everything is undone. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if (($#)); then
    echo "Usage: lab/promises.sh (no arguments)

Ends with code 1 when a promise is not kept. MARLINE is the program [default: $marline].
Needs root, ip, curl, ping, nft, python3 and /dev/net/tun."
    [[ $1 == -h || $1 == --help ]] && exit 0
    exit 2
fi

needs curl ping nft python3
build
routed
other=$("$marline" identity new other 2>/dev/null)

# A host behind the server.
host4=10.202.9.1 host6=fd02::1
ip -n "$server" address add $host4/32 dev lo
ip -n "$server" address add $host6/128 dev lo nodad
head -c 3000000 /dev/urandom >body
digest=$(sha256sum <body)
for port in 8000 8001; do
    for host in $host4 $host6; do
        begin "$server" "web-$port-${host%%[.:]*}" python3 -u -m http.server --bind $host --directory "$folder" $port
        await "web-$port-${host%%[.:]*}.out" Serving
    done
done
# At every address of the server.
begin "$server" web-8002 python3 -u -m http.server --directory "$folder" 8002
await web-8002.out Serving

serve() {
    begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
        --allow-client "$other" --control off --tun=lab-s --tun-setup --tun-state leases.toml \
        --tun-pool 10.77.0.0/24,fd77::/64 --allow-target $host4 --allow-target "[$host6]" --deny-target "*:8001"
    server_pid=${running[-1]}
    await server.out marline://
}
dial() {
    local identity=$1
    shift
    begin "$client" client "$marline" client --identity "$identity" --server "$(head -n1 server.out)" --socks off \
        --control client.sock --usage usage.toml --tun=lab-c --tun-setup --tun-route $host4/32 --tun-route $host6/128 "$@"
    client_pid=${running[-1]}
    await client.err 'packets of up to'
}
# Ends a program by a signal and waits until it has gone.
end() {
    kill "-$2" "$1"
    wait "$1" 2>/dev/null || true
}
address() { ip -n "$client" -o address show dev lab-c scope global | awk '{ print $4 }' | sort | paste -sd' '; }
same() { [[ $1 == "$2" ]] && echo "$1" || { echo "$1 is not $2"; return 1; }; }
fetches() { [[ $(within curl -sgf "http://$1/body" | sha256sum) == "$digest" ]] && echo '3 MB, whole'; }
refused() {
    local began=$EPOCHREALTIME status=0
    within curl -sgf -m 10 "http://$1/body" >/dev/null || status=$?
    [[ $status == 7 ]] || { echo "curl ended with $status"; return 1; }
    awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "after %.2f s\n", b - a; exit b - a > 3 }'
}
answers() { within ping -c 1 -W 5 "$1" | grep -oE '1 received'; }
too_big() { { within ping -M do -c 1 -W 5 -s 1400 "$1" || true; } | grep -oE 'mtu ?= ?[0-9]+'; }
mtu() { ip -n "$client" -o link show dev lab-c | grep -oE 'mtu [0-9]+'; }
follows() {
    for _ in $(seq 60); do
        # The search ends within eight bytes.
        local now
        now=$(mtu)
        ((${now#mtu } <= $1 && ${now#mtu } > $1 - 8)) && { echo "$now"; return; }
        sleep 0.1
    done
    echo "$(mtu), not $1"
    return 1
}
forwarding() { ip netns exec "$server" cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding | paste -sd' '; }
# Nothing of the tunnel is left at either end, and forwarding is as it was.
undone() {
    local left
    left=$({ ip -n "$server" -o link; ip -n "$client" -o link; } | grep -o 'lab-[cs]' || true
        ip netns exec "$server" nft list tables | grep marline || true
        { ip -n "$client" route; ip -n "$client" -6 route; } | grep -F -e $host4 -e $host6 || true)
    [[ -z $left ]] || { echo "left: ${left//$'\n'/, }"; return 1; }
    same "$(forwarding)" "$before"
}

before=$(forwarding)
serve
dial client --path c1 --path c2,cost=1

stage='who may reach what'
try 'allowed, IPv4' fetches $host4:8000
try 'allowed, IPv6' fetches "[$host6]:8000"
try 'denied, IPv4' refused $host4:8001
try 'denied, IPv6' refused "[$host6]:8001"
try 'not listed' refused 10.201.0.2:8000
for own in 10.77.0.1 fd77::1; do
    try "a ping to $own" answers $own
done
try 'all else there, IPv4' refused 10.77.0.1:8002
try 'all else there, IPv6' refused '[fd77::1]:8002'

stage='the largest packet'
try 'over paths of 1500' follows 1394
ip -n "$client" link set c1 mtu 1400
# What nobody fills shows no size.
within ping -q -i 0.02 -c 100 -s 1340 $host4 >/dev/null || true
try 'over one of 1400' follows 1294
within "$marline" paths remove c1 --control client.sock 2>/dev/null
try 'without that' follows 1394
ip -n "$client" link set c1 mtu 1500

stage='packets that are too big'
ip -n "$client" link set lab-c mtu 1500
ip -n "$server" link set lab-s mtu 1500
try 'ping of 1400 bytes, IPv4' too_big $host4
try 'ping of 1400 bytes, IPv6' too_big $host6
try 'TCP by its handshake, IPv4' fetches $host4:8000
try 'TCP by its handshake, IPv6' fetches "[$host6]:8000"

stage='addresses'
mine=$(address)
say 'first client' "$mine"
end "$client_pid" TERM
dial other --path c1
try 'another client, another one' test "$(address)" != "$mine"
end "$client_pid" TERM
end "$server_pid" TERM
serve
dial client --path c1
try 'after a restart of both' same "$(address)" "$mine"
end "$client_pid" TERM

stage='budget of 2 MB'
dial client --path c1,budget=2MB --path c2,cost=1
try 'more than that is carried' fetches $host4:8000
try 'then it stands by' shows 'c1 .*standby'
end "$client_pid" TERM
dial client --path c1,budget=2MB --path c2,cost=1
try 'also after a restart' shows 'c1 .*standby'
try 'the other path carries on' fetches $host4:8000

stage='the end'
end "$client_pid" TERM
end "$server_pid" TERM
try 'undone' undone
serve
dial client --path c1
end "$client_pid" KILL
end "$server_pid" KILL
serve
dial client --path c1
try 'killed, and started again' fetches $host4:8000
end "$client_pid" INT
end "$server_pid" INT
# The killed server left a note of the forwarding that it had switched on.
try 'then undone as well' undone
exit $failed
