#!/usr/bin/env bash
# A live stream of 4 Mb/s over two links, the better one dark for 2 s, by Marline's
# live entry and by RIST's bonding (ristsender, ristreceiver), between two namespaces: see
# lab/README.md. The links are those of `marline demo`; both may take as long as --latency says (300
# ms). Delays are those of datagrams, from the sender's socket to the receiver's; RIST hands
# everything over after its buffer's time.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

runs=1 seconds=12 latency=300
usage() { echo "usage: sudo lab/rist.sh [--runs N] [--seconds SECONDS] [--latency MS]"; }
while (($#)); do
    case $1 in
    --seconds) seconds=$2 && shift ;;
    --latency) latency=$2 && shift ;;
    --runs) runs=$2 && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done
needs python3 ristsender ristreceiver
build

links() {
    local seed=$1 dark=$((2 + seconds / 2 - 1)) device side
    begin "$anchor" link-a "$marline" link --near "wan0@$client=10.9.0.1/30" --far "wan0@$server=10.9.0.2/30" \
        --rate 20mbit --delay 15ms --jitter 2ms --loss 1% --queue 200ms --outage "${dark}s+2s" --seed "$seed"
    begin "$anchor" link-b "$marline" link --near "wan1@$client=10.9.1.1/30" --far "wan1@$server=10.9.1.2/30" \
        --rate 10mbit --delay 40ms --queue 200ms --seed "$((seed + 100))"
    for device in wan0 wan1; do
        for side in "$client" "$server"; do
            for _ in $(seq 50); do
                ip -n "$side" -o -4 address show dev "$device" 2>/dev/null | grep -q inet && break
                sleep 0.1
            done
        done
    done
}

# Both ends of each; local programs send to 5000 of the client and are received at 6000 of the
# server.
marline_ends() {
    begin "$server" server "$marline" server --identity server --listen 0.0.0.0:4433 --advertise 10.9.0.2 \
        --allow-client "$key" --control off --live udp://127.0.0.1:6000
    await server.out marline://
    begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" --control off \
        --socks off --live udp://127.0.0.1:5000 --latency "${latency}ms" "$@"
    await client.err 'is active'
}
# Weights share the stream; of weight 0 each peer has all of it.
rist_ends() {
    begin "$server" server ristreceiver -b "$latency" -i 'rist://@0.0.0.0:7000' -o udp://127.0.0.1:6000
    begin "$client" client ristsender -b "$latency" -i 'udp://@127.0.0.1:5000' \
        -o "rist://10.9.0.2:7000?buffer=$latency&weight=$1,rist://10.9.1.2:7000?buffer=$latency&weight=$2"
    sleep 2
}

# Bytes that both links were given by the client so far.
sent() { ip -n "$client" -s -j link show | python3 -c 'import json, sys
print(sum(one["stats64"]["tx"]["bytes"] for one in json.load(sys.stdin) if one["ifname"].startswith("wan")))'; }

one() {
    local name=$1 seed=$2 receiver before after pid
    links "$seed"
    case $name in
    'Marline') marline_ends --path wan0,server=10.9.0.2:4433 --path wan1,server=10.9.1.2:4433 ;;
    'RIST, shared') rist_ends 20 10 ;;
    'RIST, copied') rist_ends 0 0 ;;
    esac
    begin "$server" receive python3 "$here/live.py" receive 6000 "$seconds"
    receiver=${running[-1]}
    await receive.err ready
    before=$(sent)
    begin "$client" send python3 "$here/live.py" send 5000 "$seconds"
    wait "$receiver"
    after=$(sent)
    stop
    python3 -c '
import json, sys
live = json.loads(sys.argv[1])
figures = [live[name] for name in ("p50", "p99", "worst", "stall", "lost")]
print(*figures, round((int(sys.argv[3]) - int(sys.argv[2])) / (live["sent"] * 1316), 2))' "$(cat receive.out)" "$before" "$after"
}

printf '%-14s %8s %8s %9s %9s %7s %16s\n' '' 'p50 ms' 'p99 ms' 'worst ms' 'stall ms' lost 'sent ÷ payload'
for seed in $(seq "$runs"); do
    for name in 'Marline' 'RIST, shared' 'RIST, copied'; do
        figures=$(one "$name" "$seed")
        printf '%-14s %8s %8s %9s %9s %7s %16s\n' "$name" $figures
    done
done
