#!/usr/bin/env bash
# A tunnel of marline beside wireguard-go, over the same unshaped veth pairs in one run: what they carry, and what a
# second of CPU time carries. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=5
rounds=3

usage() {
    cat <<TEXT
Usage: lab/wireguard.sh [--seconds N] [--rounds N]

  --seconds  length of each run [default: $seconds]
  --rounds   how often each is run, in turn [default: $rounds]

The CPU time is that of the two tunnel processes, as the kernel counts it; iperf3's is not in it.
MARLINE is the program [default: $marline]. Needs root, ip, iperf3, wireguard-go, wg and /dev/net/tun.
TEXT
}

while (($#)); do
    case $1 in
    --seconds) seconds=$2 ;;
    --rounds) rounds=$2 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2 || { usage >&2 && exit 2; }
done

needs iperf3 wireguard-go wg
build
routed

ticks=$(getconf CLK_TCK)
# User and system time of processes, in ticks.
cpu() {
    local pid sum=0
    for pid in "$@"; do
        sum=$((sum + $(sed 's/.*) //' "/proc/$pid/stat" | awk '{ print $12 + $13 }')))
    done
    echo $sum
}

# One run towards an address inside the tunnel, over these processes.
measure() {
    local what=$1 address=$2 before after result
    shift 2
    begin "$server" iperf iperf3 -s -1 --forceflush -B "$address"
    await iperf.out listening
    before=$(cpu "$@")
    result=$(ip netns exec "$client" iperf3 -c "$address" -C cubic -t "$seconds" -J)
    after=$(cpu "$@")
    wait "${running[-1]}" || true
    unset 'running[-1]'
    sed -n '/"sum_received"/,/}/s/.*"bits_per_second":[[:space:]]*\([^,]*\).*/\1/p' <<<"$result" |
        awk -v w="$what" -v t="$((after - before))" -v h="$ticks" -v s="$seconds" \
            '{ printf "%-26s %8.0f Mb/s %6.2f CPU s a second %8.0f Mb a CPU s\n", w, $1 / 1e6, t / h / s, $1 * s / 1e6 / (t / h) }'
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
    local what=$1 pids
    shift
    begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
        --control off --tun=lab-s --tun-setup=no-nat --tun-state off --allow-target 10.77.0.1
    await server.out marline://
    begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" --control off \
        --socks off --tun=lab-c --tun-setup "$@"
    pids=("${running[@]: -2}")
    await client.err 'packets of up to'
    measure "$what" 10.77.0.1 "${pids[@]}"
    stop
}

for ((round = 0; round < rounds; round++)); do
    through_wireguard
    through_marline 'marline, one path' --path c1
    through_marline 'marline, two paths' --path c1 --path c2
    through_marline 'marline, one path over TCP' --path c1,carrier=tcp
done
