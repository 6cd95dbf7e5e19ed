#!/usr/bin/env bash
# A tunnel of marline beside wireguard-go, over the same unshaped veth pairs in one run: what they carry, and what a
# second of CPU time carries. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=5
rounds=3
only=bulk

usage() {
    cat <<TEXT
Usage: lab/wireguard.sh [--seconds N] [--rounds N] [--only WHAT]

  --seconds  length of each run [default: $seconds]
  --rounds   how often each is run, in turn [default: $rounds]
  --only     bulk: what TCP carries. wire: bytes on links with an MTU of 1500, IP headers included, for a byte of a bulk
             stream. live: 20 Mb/s of datagrams of 1316 bytes. ping: what a tunnel adds to 2000 pings [default: $only]

The CPU time is that of the two tunnel processes, as the kernel counts it; iperf3's is not in it. MARLINE is the program
[default: $marline], and OLD another one that is measured beside it. Needs root, ip, iperf3, ping, wireguard-go, wg and
/dev/net/tun; for wire also ethtool.
TEXT
}

while (($#)); do
    case $1 in
    --seconds) seconds=$2 ;;
    --rounds) rounds=$2 ;;
    --only) only=$2 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2 || { usage >&2 && exit 2; }
done

case $only in
bulk | live) needs iperf3 wireguard-go wg ;;
wire) needs iperf3 wireguard-go wg ethtool ;;
ping) needs ping wireguard-go wg ;;
*) usage >&2 && exit 2 ;;
esac
build
routed

# The kernel cuts nothing behind the counters.
if [[ $only == wire ]]; then
    for end in "$client c1" "$client c2" "$server s0"; do
        read -r where device <<<"$end"
        ip netns exec "$where" ethtool -K "$device" tso off gso off gro off tx-udp-segmentation off >/dev/null
    done
fi

# Bytes of IP packets that have left by devices of a namespace: all that were counted, less
# Ethernet's headers.
left() {
    local where=$1 device
    shift
    for device in "$@"; do
        ip netns exec "$where" cat "/sys/class/net/$device/statistics/tx_bytes" "/sys/class/net/$device/statistics/tx_packets"
    done | awk 'NR % 2 { sum += $1; next } { sum -= 14 * $1 } END { printf "%.0f\n", sum }'
}

# The number in an object of iperf3's output.
result() {
    sed -n "/\"$2\"/,/}/s/.*\"$3\":[[:space:]]*\([^,]*\).*/\1/p" <<<"$1"
}

# One run towards an address inside the tunnel, over these processes.
measure() {
    local what=$1 address=$2 before after out there back kind=(-C cubic)
    shift 2
    if [[ $only == ping ]]; then
        # Of times and of times without the tunnel, so that the machine's own state is the same.
        pings "$address" "$what"
        return
    fi
    [[ $only != live ]] || kind=(-u -b 20M -l 1316)
    begin "$server" iperf iperf3 -s -1 --forceflush -B "$address"
    await iperf.out listening
    before=$(cpu "$@") there=$(left "$client" c1 c2) back=$(left "$server" s0)
    out=$(ip netns exec "$client" iperf3 -c "$address" "${kind[@]}" -t "$seconds" -J)
    after=$(cpu "$@") there=$(($(left "$client" c1 c2) - there)) back=$(($(left "$server" s0) - back))
    wait "${running[-1]}" || true
    unset 'running[-1]'
    case $only in
    bulk) result "$out" sum_received bits_per_second |
        awk -v w="$what" -v t="$((after - before))" -v h="$ticks" -v s="$seconds" \
            '{ printf "%-26s %8.0f Mb/s %6.2f CPU s a second %8.0f Mb a CPU s\n", w, $1 / 1e6, t / h / s, $1 * s / 1e6 / (t / h) }' ;;
    live) result "$out" sum lost_packets | awk -v w="$what" -v t="$((after - before))" -v h="$ticks" -v s="$seconds" \
        '{ printf "%-26s %6.3f cores, %d datagrams lost\n", w, t / h / s, $1 }' ;;
    wire) result "$out" sum_received bytes | awk -v w="$what" -v t="$there" -v b="$back" \
        '{ printf "%-26s %6.3f there, %6.3f back\n", w, t / $1, b / $1 }' ;;
    esac
}

# Percentiles of the times of 2000 pings, in microseconds.
pings() {
    ip netns exec "$client" ping -i 0.002 -c 2000 "$1" | sed -n 's/.*time=\([0-9.]*\).*/\1/p' | sort -n |
        awk -v w="$2" '{ t[NR] = $1 * 1000 } END { printf "%-26s p50 %4.0f us, p99 %4.0f us, %d of 2000\n", w, t[int(NR / 2)], t[int(NR * 0.99)], NR }'
}

through_wireguard() {
    local secret public_c public_s
    (umask 077 && wg genkey >wg-c.key && wg genkey >wg-s.key)
    public_c=$(wg pubkey <wg-c.key) public_s=$(wg pubkey <wg-s.key)
    begin "$client" wg-c wireguard-go -f "wgc$$"
    begin "$server" wg-s wireguard-go -f "wgs$$"
    local pids=("${running[@]: -2}")
    until ip -n "$client" link show "wgc$$" >/dev/null 2>&1 && ip -n "$server" link show "wgs$$" >/dev/null 2>&1; do sleep 0.1; done
    sleep 0.5
    ip netns exec "$client" wg set "wgc$$" private-key wg-c.key peer "$public_s" endpoint 10.201.0.2:51820 allowed-ips 10.78.0.1/32
    ip netns exec "$server" wg set "wgs$$" private-key wg-s.key listen-port 51820 peer "$public_c" allowed-ips 10.78.0.2/32
    ip -n "$client" address add 10.78.0.2/24 dev "wgc$$"
    ip -n "$server" address add 10.78.0.1/24 dev "wgs$$"
    ip -n "$client" link set "wgc$$" up
    ip -n "$server" link set "wgs$$" up
    measure wireguard-go 10.78.0.1 "${pids[@]}"
    stop
}

through_marline() {
    local program=$1 what=$2 pids
    shift 2
    begin "$server" server "$program" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
        --control off --tun=lab-s --tun-setup=no-nat --tun-state off --allow-target 10.77.0.1
    await server.out marline://
    begin "$client" client "$program" client --identity client --server "$(head -n1 server.out)" --control off \
        --socks off --tun=lab-c --tun-setup "$@"
    pids=("${running[@]: -2}")
    await client.err 'packets of up to'
    measure "$what" 10.77.0.1 "${pids[@]}"
    stop
}

for ((round = 0; round < rounds; round++)); do
    [[ $only != ping ]] || pings 10.201.0.2 'no tunnel'
    through_wireguard
    through_marline "$marline" 'marline, one path' --path c1
    [[ -z ${OLD:-} ]] || through_marline "$OLD" 'old, one path' --path c1
    through_marline "$marline" 'marline, two paths' --path c1 --path c2
    [[ -z ${OLD:-} ]] || through_marline "$OLD" 'old, two paths' --path c1 --path c2
    [[ $only != bulk ]] || through_marline "$marline" 'marline, one path over TCP' --path c1,carrier=tcp
done
