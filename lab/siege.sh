#!/usr/bin/env bash
# A server with a hundred clients for a long time, five of them hostile: do the others get what they ask for, do memory
# and descriptors stay flat? See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=600
hostile=${HOSTILE:-$(dirname "$marline")/marline-hostile}
# The longest request (ms): twice what there was on two cores, in the first seconds; stalls were 6700 to 14300.
longest=5000
# Keys of one program, each with its session; clients by the program that people use; and those who attack.
crowd=92 clients=3 attackers=(unread upload busy claims resets)

usage() {
    cat <<TEXT
Usage: lab/siege.sh [--seconds N]

  --seconds  how long [default: $seconds]

$crowd sessions of one program and $clients clients ask for pages of 100 kB, once a second each, beside ${#attackers[@]} attackers
(${attackers[*]}) behind a link of 100 Mb/s. Ends with code 1 when a request failed or one of
the crowd's took longer than $longest ms, or when from the second
quarter of the time to the last the server's resident memory grew by more than 10 % and 4 MiB, or its open
descriptors by more than 10 % and 16. MARLINE is the program [default: $marline], HOSTILE the attacker
[default: marline-hostile beside it]. Needs root, ip, curl and /dev/net/tun.
TEXT
}

while (($#)); do
    case $1 in
    --seconds) seconds=$2 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2 || { usage >&2 && exit 2; }
done

needs curl
[[ -x $hostile ]] || { echo "error: no attacker at $hostile: cargo build --release -p marline-hostile, or set HOSTILE" >&2; exit 1; }
hostile=$(realpath "$hostile")
build
routed
ulimit -n "$(ulimit -Hn)"

# A key pair each, all on the server's list.
identities=()
name_all() {
    local number
    for number in $(seq "$1"); do
        "$marline" identity new "$2-$number" 2>/dev/null
    done
}
{ name_all $crowd crowd; name_all $clients client; name_all ${#attackers[@]} attacker; } >allowed
for number in $(seq $crowd); do identities+=(--identity "crowd-$number"); done

begin "$anchor" targets "$hostile" targets --listen 10.201.0.1:7000 --seconds $((seconds + 600))
await targets.out ready
begin "$server" server bash -c 'ulimit -Sn 1024; exec "$@"' - "$marline" server --identity server \
    --listen 10.201.0.2:4433 --allow-clients-file allowed --control off --allow-target 10.201.0.1
server_pid=${running[-1]}
await server.out marline://
string=$(head -n1 server.out)
begin "$anchor" link "$marline" link --listen 10.201.1.1:5000 --to 10.201.0.2:4433 --rate 100mbit --delay 10ms
await link.err relaying

# The honest ones.
pages() {
    local port=$1 end=$2
    until ((SECONDS >= end)); do
        curl -sf -m 20 -o /dev/null -w '%{time_total}\n' --proxy "socks5h://127.0.0.1:$port" http://10.201.0.1:7004/ || echo failed
        sleep 1
    done
}
begin "$client" crowd "$hostile" crowd --server "$string" "${identities[@]}" --path c2 --target 10.201.0.1:7004 --seconds "$seconds"
await crowd.out ready 120
export -f pages
for number in $(seq $clients); do
    begin "$client" "client-$number" "$marline" client --identity "client-$number" --server "$string" --path c2 \
        --control off --socks "127.0.0.1:108$number"
done
sleep 1
for number in $(seq $clients); do
    begin "$client" "pages-$number" bash -c "SECONDS=0; pages 108$number $seconds"
done

# The others.
number=0
for what in "${attackers[@]}"; do
    number=$((number + 1))
    case $what in
    unread) words=(unread --sessions 8 --count 1000 --target 10.201.0.1:7002) ;;
    upload) words=(upload --sessions 4 --count 500 --target 10.201.0.1:7000) ;;
    busy) words=(busy --count 500 --target 10.201.0.1:7002) ;;
    *) words=(frames --wave "$what" --sessions 4 --rate 500 --target 10.201.0.1:7000) ;;
    esac
    begin "$client" "attacker-$number" "$hostile" "${words[@]}" --identity "attacker-$number" --server "$string" \
        --path c1,server=10.201.1.1:5000,carrier=quic --seconds "$seconds"
done

resident() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }
end=$((SECONDS + seconds))
while ((SECONDS < end)); do
    sleep 1
    echo "$(resident "$server_pid") $(ls "/proc/$server_pid/fd" | wc -l)" >>samples || { echo "error: the server has ended:" >&2; tail -n3 server.err >&2; exit 1; }
done
# The last requests may take their time.
sleep 22

awk '{ memory[NR] = $1 / 1024; descriptors[NR] = $2 }
    function mean(of, from, to,  i, sum) { for (i = from; i <= to; i++) sum += of[i]; return sum / (to - from + 1) }
    function grew(what, of, some,  early, late) {
        early = mean(of, int(NR / 4) + 1, int(NR / 2)); late = mean(of, int(3 * NR / 4) + 1, NR)
        printf "%s: %.1f in the second quarter, %.1f in the last\n", what, early, late
        return late > 1.1 * early && late > early + some
    }
    END { bad = grew("MiB resident", memory, 4); bad = grew("descriptors", descriptors, 16) || bad; exit bad }' samples || failed=1
echo "crowd of $crowd: $(tail -n +2 crowd.out | paste -sd' ')"
grep -q '^failed: 0$' crowd.out || failed=1
awk -v most=$longest '/ longest / { late = $(NF - 1) > most } END { exit late }' crowd.out || failed=1
sort -n pages-*.out | awk '/failed/ { failures++; next } { times[++n] = $1 }
    END { late = int(n * 0.99) + 1; if (late > n) late = n
        printf "%d requests through proxies, %d failed, p50 %.0f ms, p99 %.0f ms\n", n, failures,
            1e3 * times[int((n + 1) / 2)], 1e3 * times[late]
        exit failures > 0 || n == 0 }' || failed=1
exit "$failed"
