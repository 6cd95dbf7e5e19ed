#!/usr/bin/env bash
# Kernel TCP through a Marline tunnel over two emulated links, and as a stream of Marline's own,
# between network namespaces:
#
#   client ── c1 ── link A ── anchor ── server      (marline client --tun, marline link, marline server --tun)
#          ── c2 ── link B ──
#
# Pings go beside it. Prints a table, and one JSON object a line to the file that --json names.
# Everything is removed at the end, also after an error or a signal. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

carrier=quic
tcp_cc=bbr
link_a=rate=25mbit,delay=10ms,queue=100ms
link_b=rate=25mbit,delay=15ms,queue=100ms
schedulers=edpf,brim
controls=reno,cubic,bbr
cost_b=1
seconds=10
direction=up
json=/dev/null

usage() {
    cat <<TEXT
Usage: lab/tunnel.sh [--link-a KEYS] [--link-b KEYS] [--schedulers LIST] [--tcp LIST] [--seconds N] [--cost-b N]
                     [--direction up|down] [--carrier quic|tcp] [--tcp-cc NAME] [--json FILE]

  --link-a, --link-b  what \`marline link\` does on the way, as rate=25mbit,delay=10ms [default: $link_a, $link_b]
  --schedulers        of both ends, separated by commas; auto chooses by cost [default: $schedulers]
  --tcp               the kernel's congestion controls; \`stream\` is a forwarded connection, which Marline carries as a
                      stream of its own instead of as packets; \`none\` only pings, as beside all of them [default: $controls]
  --cost-b            cost of link B [default: $cost_b]
  --seconds           length of each run [default: $seconds]
  --direction         up: the client sends; down: the server does [default: $direction]
  --carrier           what carries the paths [default: $carrier]
  --tcp-cc            the kernel's congestion control of paths over TCP [default: $tcp_cc]
  --json              file for the results, one object a line

MARLINE is the program [default: $marline]. Needs root, ip, iperf3 and /dev/net/tun.
TEXT
}

while (($#)); do
    case $1 in
    --link-a) link_a=$2 ;;
    --link-b) link_b=$2 ;;
    --schedulers) schedulers=$2 ;;
    --tcp) controls=$2 ;;
    --seconds) seconds=$2 ;;
    --cost-b) cost_b=$2 ;;
    --direction) direction=$2 ;;
    --carrier) carrier=$2 ;;
    --tcp-cc) tcp_cc=$2 ;;
    --json) json=$2 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2 || { usage >&2 && exit 2; }
done

case $direction in
up) reverse=() ;;
down) reverse=(-R) ;;
*) usage >&2 && exit 2 ;;
esac

case $carrier in
quic) targets=(10.201.0.2:4433 10.201.0.2:4433) ;;
tcp) targets=(10.201.0.2:6001 10.201.0.2:6002) ;;
*) usage >&2 && exit 2 ;;
esac

needs iperf3 ping
[[ $carrier == quic ]] || needs python3
json=$(realpath -m "$json")
build

# The paths over QUIC lead to the links themselves. TCP is no UDP: its packets travel in a wire's
# datagrams.
wires() {
    local number letter
    for number in 1 2; do
        letter=$([[ $number == 1 ]] && echo a || echo b)
        begin "$server" "wire-s$number" python3 "$here/wire.py" "w$number" listen "10.201.0.2:600$number"
        begin "$client" "wire-c$number" python3 "$here/wire.py" "w$number" to "10.201.$number.1:5000"
        await "wire-s$number.out" ready
        await "wire-c$number.out" ready
        ip -n "$server" address add "10.202.$number.1/30" dev "w$number"
        ip -n "$client" address add "10.202.$number.2/30" dev "w$number"
        ip -n "$server" link set "w$number" up mtu 1440
        ip -n "$client" link set "w$number" up mtu 1440
        paths+=(--path "w$number,cost=$((number == 2 ? cost_b : 0)),server=10.202.$number.1:4433,carrier=tcp,tcp-cc=$tcp_cc,name=$letter")
    done
}

# What iperf3 would say of nothing.
quiet='"sum_received" {
"bits_per_second": 0,
}
"sum_sent" {
"retransmits": 0,
}'

# Median, 99th percentile (ms) and share lost (%) of the pings in a file.
pings() {
    awk '/ time=/ { sub(/.*time=/, ""); print $1 | "sort -n" }' "$1" | awk -v sent="$((10 * seconds))" '
        { t[NR] = $1 }
        END { printf "%.1f %.1f %.1f", t[int((NR + 1) / 2)], t[int(NR * 0.99 + 0.5)], 100 * (1 - NR / sent) }'
}

printf '%-8s %-12s %-8s %12s %8s %8s %8s %6s\n' carrier scheduler tcp 'goodput Mb/s' resent 'ping p50' 'p99 ms' 'lost %'
for scheduler in ${schedulers//,/ }; do
    begin "$server" server "$marline" server --identity server --listen 0.0.0.0:4433 --advertise 10.201.0.2 --tcp-cc "$tcp_cc" --allow-client "$key" \
        --control off --scheduler "$scheduler" --tun=lab-s --tun-setup=no-nat --tun-state off --allow-target 10.77.0.1
    await server.out marline://
    # shellcheck disable=SC2046
    begin "$anchor" link-a "$marline" link --listen 10.201.1.1:5000 --to "${targets[0]}" $(flags "$link_a")
    # shellcheck disable=SC2046
    begin "$anchor" link-b "$marline" link --listen 10.201.2.1:5000 --to "${targets[1]}" $(flags "$link_b")
    await link-a.err relaying
    await link-b.err relaying
    paths=()
    if [[ $carrier == tcp ]]; then
        wires
    else
        paths=(--path c1,server=10.201.1.1:5000,name=a --path "c2,cost=$cost_b,server=10.201.2.1:5000,name=b")
    fi
    begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" \
        --control client.sock --socks off --forward tcp:127.0.0.1:5201=10.77.0.1:5201 --scheduler "$scheduler" --tun=lab-c --tun-setup "${paths[@]}"
    await client.err 'packets of up to'
    for control in ${controls//,/ }; do
        [[ $control == none ]] || begin "$server" iperf iperf3 -s -1 --forceflush -B 10.77.0.1
        [[ $control == none ]] || await iperf.out 'listening'
        to=(10.77.0.1 -C "$control")
        [[ $control != stream ]] || to=(127.0.0.1)
        ip netns exec "$client" ping -n -i 0.1 -c "$((10 * seconds))" -W 2 10.77.0.1 >pings &
        pinging=$!
        if [[ $control == none ]]; then
            sleep "$seconds"
            result=$quiet
        else
            result=$(ip netns exec "$client" iperf3 -c "${to[@]}" -t "$seconds" "${reverse[@]}" -J) || {
                echo "error: iperf3: $result" >&2
                exit 1
            }
        fi
        wait "$pinging" || true
        read -r p50 p99 lost < <(pings pings; echo)
        # Its port must be free for the next run.
        if [[ $control != none ]]; then
            wait "${running[-1]}" || true
            unset 'running[-1]'
        fi
        # Of the receiver's sum and the sender's, as iperf3 prints them: one key a line.
        goodput=$(sed -n '/"sum_received"/,/}/s/.*"bits_per_second":[[:space:]]*\([^,]*\).*/\1/p' <<<"$result")
        resent=$(sed -n '/"sum_sent"/,/}/s/.*"retransmits":[[:space:]]*\([^,]*\).*/\1/p' <<<"$result")
        [[ -n $goodput && -n $resent ]] || { echo "error: iperf3 says what this script cannot read" >&2; exit 1; }
        awk -v k="$carrier" -v s="$scheduler" -v c="$control" -v g="$goodput" -v r="$resent" -v m="$p50" -v h="$p99" -v l="$lost" \
            'BEGIN { printf "%-8s %-12s %-8s %12.2f %8d %8.1f %8.1f %6.1f\n", k, s, c, g / 1e6, r, m, h, l }'
        awk -v s="$scheduler" -v c="$control" -v g="$goodput" -v r="$resent" -v a="$link_a" -v b="$link_b" -v t="$seconds" -v d="$direction" -v k="$carrier" \
            -v m="$p50" -v h="$p99" -v l="$lost" \
            'BEGIN { printf "{\"carrier\":\"%s\",\"direction\":\"%s\",\"scheduler\":\"%s\",\"tcp\":\"%s\",\"goodput_bps\":%.0f,\"retransmits\":%d,\"ping_p50_ms\":%.1f,\"ping_p99_ms\":%.1f,\"ping_lost_percent\":%.1f,\"link_a\":\"%s\",\"link_b\":\"%s\",\"seconds\":%d}\n", k, d, s, c, g, r, m, h, l, a, b, t }' >>"$json"
    done
    stop
done
