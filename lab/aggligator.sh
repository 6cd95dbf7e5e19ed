#!/usr/bin/env bash
# A forwarded TCP connection of marline beside Aggligator's agg-tunnel, which does not encrypt, over
# the same unshaped veth pairs in one run: what they carry, and what a second of CPU time carries.
# See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=5
rounds=5

usage() {
    cat <<TEXT
Usage: lab/aggligator.sh [--seconds N] [--rounds N]

  --seconds  length of each run [default: $seconds]
  --rounds   how often each is run, in turn [default: $rounds]

The CPU time is that of the two ends, as the kernel counts it; iperf3's is not in it. MARLINE is the program [default:
$marline], over QUIC and over TCP. Needs root, ip, iperf3, agg-tunnel (cargo install aggligator-util) and /dev/net/tun.
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

needs iperf3 agg-tunnel
build
routed

# One run through the client's port 5201, over the two ends that were started last.
measure() {
    local what=$1 pids=("${running[@]: -2}") before after carried
    begin "$server" iperf iperf3 -s -1 --forceflush -B 127.0.0.1
    await iperf.out listening
    before=$(cpu "${pids[@]}")
    carried=$(ip netns exec "$client" iperf3 -c 127.0.0.1 -t "$seconds" -J |
        sed -n '/"sum_received"/,/}/s/.*"bytes":[[:space:]]*\([0-9]*\).*/\1/p')
    after=$(cpu "${pids[@]}")
    awk -v w="$what" -v b="$carried" -v t="$((after - before))" -v h="$ticks" -v s="$seconds" \
        'BEGIN { printf "%-20s %6.0f Mb/s %6.2f CPU s a second %6.0f Mb a CPU s\n", w, b * 8e-6 / s, t / h / s, b * 8e-6 / (t / h) }'
    stop
}

through_aggligator() {
    # A port of its own each time: connections of the last one may linger.
    begin "$server" agg-s agg-tunnel server --no-monitor --tcp $((5800 + round)) --port 5201
    sleep 0.5
    begin "$client" agg-c agg-tunnel client --no-monitor --ipv4 --tcp "10.201.0.2:$((5800 + round))" --port 5201
    sleep 2
    measure aggligator
}

through_marline() {
    begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
        --control off --allow-target 127.0.0.1
    await server.out marline://
    begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" --control off \
        --socks off --forward tcp:127.0.0.1:5201=127.0.0.1:5201 --path "c1$2" --path "c2$2"
    sleep 2
    measure "$1"
}

for ((round = 0; round < rounds; round++)); do
    through_aggligator
    through_marline 'marline over QUIC' ''
    through_marline 'marline over TCP' ,carrier=tcp
done
