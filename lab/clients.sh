#!/usr/bin/env bash
# What a client's limits do: rates through the tunnel both ways with `down=` and `up=`, how long
# pings take beside that, that another client is not concerned, and that a change of limits,
# networks and addresses holds at once. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

needs ping iperf3 nft python3
carrier=${CARRIER:+,carrier=$CARRIER}
build
routed
"$marline" identity new other >other.pub 2>/dev/null
echo "$key first" >clients
echo "$(cat other.pub) second" >>clients
begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-clients-file clients \
    --control server.sock --tun=tun-s --tun-setup --tun-pool 10.77.0.0/24 --allow-target 10.77.0.1
await server.out marline://
string=$(head -1 server.out)
begin "$client" client "$marline" client --identity client --server "$string" --path "c1$carrier" --path "c2$carrier" --socks off \
    --control client.sock --tun=tun-c --tun-setup
begin "$client" other "$marline" client --identity other --server "$string" --path "c1$carrier" --path "c2$carrier" --socks off \
    --control other.sock --forward tcp:127.0.0.1:7001=10.77.0.1:5202
await client.err 'packets of up to'
begin "$server" iperf iperf3 -s --forceflush -B 10.77.0.1
# The other client has one of its own: one serves one client at a time.
begin "$server" other-iperf iperf3 -s --forceflush -B 10.77.0.1 -p 5202
await iperf.out listening
await other-iperf.out listening

# A line's options, taken up by the server that runs.
grants() { "$marline" clients --file clients --control server.sock change first "$@" >/dev/null; }

# Mb/s up, or with -R down, and the pings beside it: median and 99th of a hundred.
load() {
    within iperf3 -c 10.77.0.1 -t 8 -J "$@" >rate.json &
    local loading=$!
    sleep 2
    within ping -q -c 250 -i 0.02 10.77.0.1 >pings || true
    wait "$loading"
    python3 - <<'TEXT'
import json, re
rate = json.load(open("rate.json"))["end"]["sum_received"]["bits_per_second"] / 1e6
pings = open("pings").read()
lost = re.search(r"([\d.]+)% packet loss", pings)[1]
least, mean, most = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)", pings).groups()
print(f"{rate:.1f} Mb/s, pings mean {mean} ms, worst {most} ms, lost {lost} %")
TEXT
}

# The rate is so, by a twentieth more at most and a fifth less, and pings take 40 ms on the average
# at most and what ten packets of the rate take.
holds() {
    local rate=$1 found
    shift
    found=$(load "$@")
    echo "$found"
    awk -v rate="$rate" '{ sub("ms,", "", $5); exit !($1 <= 1.05 * rate && $1 >= 0.8 * rate && $5 < 40 + 120 / rate) }' <<<"$found"
}

stage='no limit'
say 'down' "$(load -R)"
say 'up' "$(load)"
for rate in ${RATES:-20 5 1}; do
    stage="down=${rate}mbit,up=${rate}mbit"
    grants -o "down=${rate}mbit" -o "up=${rate}mbit"
    try 'down' holds "$rate" -R
    try 'up' holds "$rate"
done
# Within five seconds a command prints a line like that, or with `no` before it does not.
becomes() {
    local wanted=yes found
    if [[ $1 == no ]]; then wanted=no && shift; fi
    for _ in $(seq 50); do
        found=no
        if "${@:2}" 2>/dev/null | grep -q -- "$1"; then found=yes; fi
        [[ $found != "$wanted" ]] || return 0
        sleep 0.1
    done
    "${@:2}" | head -3
    return 1
}
# Beside it the other client loads its tunnel's server. What changes concerns the first one.
within iperf3 -c 127.0.0.1 -p 7001 -t 10 -J >other.json &
beside=$!
sleep 1
stage='the tunnel'
grants -o prefix=192.168.78.0/24 -o address=10.77.0.99
try 'a network behind it' becomes 192.168.78.0/24 ip -n "$server" route
try 'is translated' becomes 192.168.78.0/24 ip netns exec "$server" nft list ruleset
try 'its address' becomes 10.77.0.99 ip -n "$client" address show tun-c
grants -o prefix= -o address=
try 'the network goes' becomes no 192.168.78.0/24 ip -n "$server" route
try 'and its translation' becomes no 192.168.78.0/24 ip netns exec "$server" nft list ruleset
try 'the address stays' becomes 10.77.0.99 ip -n "$client" address show tun-c
stage='another client'
unlimited() { python3 -c '
import json
found = json.load(open("other.json"))
if "error" in found: exit(found["error"])
rate = found["end"]["sum_received"]["bits_per_second"] / 1e6
print(f"{rate:.0f} Mb/s")
exit(rate < 50)'; }
wait "$beside" || true
try 'no limit, nor an end' unlimited
stage='both ends'
sessions=$("$marline" status --control server.sock --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["sessions"]))')
if [[ $sessions == 2 ]]; then say 'no session ended' ok; else say 'no session ended' "FAILED: $sessions"; fi
say 'the list' "$("$marline" clients --file clients --control server.sock list | tr '\n' '|')"
exit "$failed"
