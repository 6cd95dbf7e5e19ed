#!/usr/bin/env bash
# Kernel TCP through a Marline tunnel over two emulated links, between network namespaces:
#
#   client ── c1 ── link A ── anchor ── server      (marline client --tun, marline link, marline server --tun)
#          ── c2 ── link B ──
#
# Prints a table, and one JSON object a line to the file that --json names. Everything is removed at the end, also
# after an error or a signal. See lab/README.md.
set -euo pipefail

marline=${MARLINE:-target/release/marline}
link_a=rate=25mbit,delay=10ms,queue=100ms
link_b=rate=25mbit,delay=15ms,queue=100ms
schedulers=edpf,brim
controls=reno,cubic,bbr
seconds=10
direction=up
json=/dev/null

usage() {
    cat <<TEXT
Usage: lab/tunnel.sh [--link-a KEYS] [--link-b KEYS] [--schedulers LIST] [--tcp LIST] [--seconds N]
                     [--direction up|down] [--json FILE]

  --link-a, --link-b  what \`marline link\` does on the way, as rate=25mbit,delay=10ms [default: $link_a, $link_b]
  --schedulers        of both ends, separated by commas; auto chooses by cost [default: $schedulers]
  --tcp               the kernel's congestion controls [default: $controls]
  --seconds           length of each run [default: $seconds]
  --direction         up: the client sends; down: the server does [default: $direction]
  --json              file for the results, one object a line

MARLINE is the program [default: $marline]. Link B has cost 1. Needs root, ip, iperf3 and /dev/net/tun.
TEXT
}

while (($#)); do
    case $1 in
    --link-a) link_a=$2 ;;
    --link-b) link_b=$2 ;;
    --schedulers) schedulers=$2 ;;
    --tcp) controls=$2 ;;
    --seconds) seconds=$2 ;;
    --direction) direction=$2 ;;
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

skip() {
    echo "SKIPPED: $1" >&2
    exit 0
}
[[ $(id -u) == 0 ]] || skip "network namespaces need root"
[[ -c /dev/net/tun ]] || skip "there is no /dev/net/tun"
command -v ip >/dev/null || skip "ip is not installed (apt-get install iproute2)"
command -v iperf3 >/dev/null || skip "iperf3 is not installed (apt-get install iperf3)"
[[ -x $marline ]] || { echo "error: no program at $marline: cargo build --release, or set MARLINE" >&2; exit 1; }
marline=$(realpath "$marline")
json=$(realpath -m "$json")

folder=$(mktemp -d)
client=marline-lab-$$-c anchor=marline-lab-$$-a server=marline-lab-$$-s
running=()

stop() {
    local pid
    for pid in "${running[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    running=()
}

clean_up() {
    trap - EXIT INT TERM
    set +e
    stop
    for name in $client $anchor $server; do
        ip netns del "$name" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Starts a program in a namespace, its output in a file of that name.
begin() {
    local namespace=$1 log=$2
    shift 2
    ip netns exec "$namespace" "$@" >"$folder/$log.out" 2>"$folder/$log.err" &
    running+=($!)
}

# Waits until a file has a line like that.
await() {
    local file=$folder/$1 pattern=$2
    for _ in $(seq 200); do
        grep -q -- "$pattern" "$file" 2>/dev/null && return
        sleep 0.1
    done
    echo "error: no \`$pattern\` in $1:" >&2
    cat "$folder"/*.err >&2
    exit 1
}

for name in $client $anchor $server; do
    ip netns add "$name"
    ip -n "$name" link set lo up
done
for wire in "$client c1 a1 1" "$client c2 a2 2" "$server s0 a0 0"; do
    read -r side near far number <<<"$wire"
    ip link add "$near" netns "$side" type veth peer name "$far" netns "$anchor"
    ip -n "$side" address add "10.201.$number.2/24" dev "$near"
    ip -n "$anchor" address add "10.201.$number.1/24" dev "$far"
    ip -n "$side" link set "$near" up
    ip -n "$anchor" link set "$far" up
done

cd "$folder"
"$marline" identity new server >/dev/null 2>&1
key=$("$marline" identity new client 2>/dev/null)

# The keys of a link as flags of `marline link`.
flags() {
    local key
    for key in ${1//,/ }; do
        printf -- '--%s %s ' "${key%%=*}" "${key#*=}"
    done
}

printf '%-12s %-8s %12s %8s\n' scheduler tcp 'goodput Mb/s' resent
for scheduler in ${schedulers//,/ }; do
    begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
        --control off --scheduler "$scheduler" --tun=lab-s --tun-setup=no-nat --tun-state off
    await server.out marline://
    # shellcheck disable=SC2046
    begin "$anchor" link-a "$marline" link --listen 10.201.1.1:5000 --to 10.201.0.2:4433 $(flags "$link_a")
    # shellcheck disable=SC2046
    begin "$anchor" link-b "$marline" link --listen 10.201.2.1:5000 --to 10.201.0.2:4433 $(flags "$link_b")
    await link-a.err relaying
    await link-b.err relaying
    begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" \
        --control client.sock --socks off --scheduler "$scheduler" --tun=lab-c --tun-setup \
        --path c1,server=10.201.1.1:5000,name=a --path c2,cost=1,server=10.201.2.1:5000,name=b
    await client.err 'packets of up to'
    for control in ${controls//,/ }; do
        begin "$server" iperf iperf3 -s -1 --forceflush -B 10.77.0.1
        await iperf.out 'listening'
        result=$(ip netns exec "$client" iperf3 -c 10.77.0.1 -C "$control" -t "$seconds" "${reverse[@]}" -J) || {
            echo "error: iperf3: $result" >&2
            exit 1
        }
        # Its port must be free for the next run.
        wait "${running[-1]}" || true
        unset 'running[-1]'
        # Of the receiver's sum and the sender's, as iperf3 prints them: one key a line.
        goodput=$(sed -n '/"sum_received"/,/}/s/.*"bits_per_second":[[:space:]]*\([^,]*\).*/\1/p' <<<"$result")
        resent=$(sed -n '/"sum_sent"/,/}/s/.*"retransmits":[[:space:]]*\([^,]*\).*/\1/p' <<<"$result")
        [[ -n $goodput && -n $resent ]] || { echo "error: iperf3 says what this script cannot read" >&2; exit 1; }
        awk -v s="$scheduler" -v c="$control" -v g="$goodput" -v r="$resent" \
            'BEGIN { printf "%-12s %-8s %12.2f %8d\n", s, c, g / 1e6, r }'
        awk -v s="$scheduler" -v c="$control" -v g="$goodput" -v r="$resent" -v a="$link_a" -v b="$link_b" -v t="$seconds" -v d="$direction" \
            'BEGIN { printf "{\"direction\":\"%s\",\"scheduler\":\"%s\",\"tcp\":\"%s\",\"goodput_bps\":%.0f,\"retransmits\":%d,\"link_a\":\"%s\",\"link_b\":\"%s\",\"seconds\":%d}\n", d, s, c, g, r, a, b, t }' >>"$json"
    done
    stop
done
