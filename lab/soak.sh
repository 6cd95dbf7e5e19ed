#!/usr/bin/env bash
# A tunnel at its links' rate for a long time, while its two paths go dark in turn: does memory stay flat, does nothing
# stall while a path lives? See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=600
link=rate=25mbit,delay=15ms,queue=100ms
scheduler=auto

usage() {
    cat <<TEXT
Usage: lab/soak.sh [--seconds N] [--link KEYS] [--scheduler NAME]

  --seconds    how long [default: $seconds]
  --link       what \`marline link\` does on both ways [default: $link]
  --scheduler  of both ends [default: $scheduler]

Every 8 s one way is dark for 3 s, in turn. Ends with code 1 when resident memory of either end grew by more than 10 %
and 4 MiB from the second quarter of the time to the last, or when for more than 1 s no ping was answered.
MARLINE is the program [default: $marline]. Needs root, ip, iperf3, ping and /dev/net/tun.
TEXT
}

while (($#)); do
    case $1 in
    --seconds) seconds=$2 ;;
    --link) link=$2 ;;
    --scheduler) scheduler=$2 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2 || { usage >&2 && exit 2; }
done

needs iperf3 ping
build

begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
    --control off --scheduler "$scheduler" --tun=lab-s --tun-setup=no-nat --tun-state off --allow-target 10.77.0.1
server_pid=${running[-1]}
await server.out marline://
for number in 1 2; do
    # shellcheck disable=SC2046
    begin "$anchor" "link-$number" "$marline" link --listen "10.201.$number.1:5000" --to 10.201.0.2:4433 $(flags "$link")
    await "link-$number.err" relaying
done
begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" --control off --socks off \
    --scheduler "$scheduler" --tun=lab-c --tun-setup \
    --path c1,server=10.201.1.1:5000 --path c2,server=10.201.2.1:5000
client_pid=${running[-1]}
await client.err 'packets of up to'

begin "$server" iperf iperf3 -s -1 --forceflush -B 10.77.0.1
await iperf.out listening
begin "$client" load iperf3 -c 10.77.0.1 -C cubic -t "$seconds" -i 0 -f m
begin "$client" pings ping -D -i 0.1 10.77.0.1

resident() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }
dark=0 end=$((SECONDS + seconds))
while ((SECONDS < end)); do
    dark=$((dark % 2 + 1))
    sleep 5
    ip -n "$anchor" link set "a$dark" down
    sleep 3
    ip -n "$anchor" link set "a$dark" up
    echo "$SECONDS $(resident "$client_pid") $(resident "$server_pid")" >>memory
done
sleep 1

awk -F'[][]' '/bytes from/ { if (last && $2 - last > worst) worst = $2 - last; last = $2; count++ }
    END { printf "pings: %d answered, longest gap %.2f s\n", count, worst; exit !(count > 0 && worst <= 1.1) }' pings.out || failed=1
awk '{ time[NR] = $1; client[NR] = $2; server[NR] = $3 }
    function mean(of, from, to,  i, sum) { for (i = from; i <= to; i++) sum += of[i]; return sum / (to - from + 1) }
    function grew(name, of,  early, late) {
        early = mean(of, int(NR / 4) + 1, int(NR / 2)); late = mean(of, int(3 * NR / 4) + 1, NR)
        printf "resident memory of the %s: %.1f MiB in the second quarter, %.1f MiB in the last\n", name, early / 1024, late / 1024
        return late > 1.1 * early && late > early + 4096
    }
    END { bad = grew("client", client); bad = grew("server", server) || bad; exit bad }' memory || failed=1
grep -E 'receiver' load.out || { echo "error: the load ended early:" >&2; cat load.err >&2; failed=1; }
exit "${failed:-0}"
