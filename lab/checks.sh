#!/usr/bin/env bash
# What people do through a tunnel, by IPv4 and IPv6, while paths come and go: ping, curl, a DNS lookup, and iperf3 with
# the kernel's reno, cubic and bbr. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

brief=
usage() {
    cat <<TEXT
Usage: lab/checks.sh [--brief]

  --brief  without iperf3: whether everything works, not how fast; some 20 s

Ends with code 1 when something does not work. MARLINE is the program [default: $marline].
Needs root, ip, iperf3, curl, ping, nft, python3 and /dev/net/tun.
TEXT
}

while (($#)); do
    case $1 in
    --brief) brief=yes ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done

needs curl ping nft python3 getent
[[ $brief ]] || needs iperf3
build
routed

# A third way, for later.
ip link add a3 netns "$anchor" type veth peer name c3 netns "$client"
ip -n "$client" address add 10.201.3.2/24 dev c3
ip -n "$anchor" address add 10.201.3.1/24 dev a3
ip -n "$anchor" link set a3 up
ip -n "$client" link set c3 up
ip -n "$client" route add 10.201.0.0/24 via 10.201.3.1 dev c3 metric 3

begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
    --control server.sock --tun=lab-s --tun-setup=no-nat --tun-state off --tun-pool 10.77.0.0/24,fd77::/64 \
    --allow-target 10.77.0.1 --allow-target fd77::1
await server.out marline://
begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" --control client.sock \
    --socks off --tun=lab-c --tun-setup --path c1 --path c2,cost=1
await client.err 'packets of up to'

head -c 3000000 /dev/urandom >body
digest=$(sha256sum <body)
begin "$server" web4 python3 -u -m http.server --bind 10.77.0.1 --directory "$folder" 8000
begin "$server" web6 python3 -u -m http.server --bind fd77::1 --directory "$folder" 8000
await web4.out Serving
await web6.out Serving
begin "$server" names python3 "$here/names.py" 10.77.0.1 fd77::1
await names.out ready
mkdir -p "/etc/netns/$client"

pings() { within ping -c 3 -i 0.2 -W 5 "$1" | sed -n 's/.* = [^/]*\/\([^/]*\)\/.*/\1 ms/p'; }
fetches() { [[ $(within curl -sgf "http://$1:8000/body" | sha256sum) == "$digest" ]] && echo '3 MB, whole'; }
looks_up() {
    echo "nameserver $1" >"/etc/netns/$client/resolv.conf"
    within getent "$2" name.example | sed -n '1s/ .*//p' | grep .
}
carries() {
    begin "$server" iperf iperf3 -s -1 --forceflush -B "$1"
    await iperf.out listening
    local status=0
    within iperf3 -c "$1" -C "$2" -t 2 -f m | sed -n 's/.* \([0-9.]* Mbits\/sec\).*receiver/\1/p' | grep . || status=1
    kill "${running[-1]}" 2>/dev/null || true
    wait "${running[-1]}" 2>/dev/null || true
    unset 'running[-1]'
    return $status
}

everything() {
    local control
    stage=$1
    try 'ping IPv4' pings 10.77.0.1
    try 'ping IPv6' pings fd77::1
    try 'curl IPv4' fetches 10.77.0.1
    try 'curl IPv6' fetches '[fd77::1]'
    try 'DNS by IPv4' looks_up 10.77.0.1 ahostsv4
    try 'DNS by IPv6' looks_up fd77::1 ahostsv6
    [[ ! $brief ]] || return 0
    for control in reno cubic bbr; do
        try "iperf3 $control IPv4" carries 10.77.0.1 "$control"
    done
    try 'iperf3 cubic IPv6' carries fd77::1 cubic
}

everything 'two paths'
ip -n "$anchor" link set a1 down
everything 'the first path killed'
"$marline" paths add c3 --control client.sock
shows 'c3 +active'
ip -n "$anchor" link set a2 down
everything 'another added, second killed'
ip netns exec "$anchor" nft add table inet lab
ip netns exec "$anchor" nft 'add chain inet lab blocked { type filter hook forward priority 0; }'
ip netns exec "$anchor" nft 'add rule inet lab blocked iifname "a1" meta l4proto udp drop'
ip -n "$anchor" link set a1 up
shows 'c1 +active .*carried by tcp'
"$marline" paths remove c3 --control client.sock
everything 'UDP blocked on what is left'
exit $failed
