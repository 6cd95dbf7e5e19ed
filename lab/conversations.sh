#!/usr/bin/env bash
# Thousands of short conversations through the tunnel, over links with a delay: how many of their packets have no
# answer, and what a ping beside them takes. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

link=rate=50mbit,delay=60ms,queue=200ms
usage() {
    cat <<TEXT
Usage: lab/conversations.sh [LINK]

  LINK  of both paths, as \`marline link\` takes it [default: $link]

3000 UDP conversations of a packet each half second, 50 DNS queries a second from fresh ports, and a ping. Ends with
code 1 when more than one in a thousand is lost, or the ping takes 5 ms longer than alone at its 99th percentile.
MARLINE is the program [default: $marline]. Needs root, ip, ping, python3 and /dev/net/tun.
TEXT
}
case ${1:-} in
-h | --help) usage && exit 0 ;;
-*) usage >&2 && exit 2 ;;
'') ;;
*) link=$1 ;;
esac

needs ping python3
build

cat >echo.py <<'TEXT'
import select, socket
sockets = []
for port in (53, 7000):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    one.bind(("10.77.0.1", port))
    sockets.append(one)
print("ready", flush=True)
while True:
    for one in select.select(sockets, [], [])[0]:
        data, peer = one.recvfrom(2048)
        one.sendto(data, peer)
TEXT
cat >load.py <<'TEXT'
import heapq, resource, select, socket, sys, time

CONVERSATIONS, SECONDS, QUERIES = 3000, 8, 50
resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))
poll = select.epoll()
sockets, sent, heard = {}, [0, 0], [0, 0]

def open_one(port):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setblocking(False)
    one.connect(("10.77.0.1", port))
    poll.register(one, select.EPOLLIN)
    sockets[one.fileno()] = (one, port == 53)
    return one

begun = time.monotonic()
due = [(begun + n / CONVERSATIONS, n, open_one(7000), 0) for n in range(CONVERSATIONS)]
heapq.heapify(due)
queries = 0
while True:
    now = time.monotonic() - begun
    if now > SECONDS + 2:
        break
    while due and due[0][0] <= begun + now:
        at, number, one, count = heapq.heappop(due)
        one.send(b"%d" % count)
        sent[0] += 1
        if at + 0.5 < begun + SECONDS:
            heapq.heappush(due, (at + 0.5, number, one, count + 1))
    while queries < QUERIES * min(now, SECONDS):
        open_one(53).send(b"question")
        queries += 1
        sent[1] += 1
    for number, _ in poll.poll(0.005):
        one, is_query = sockets[number]
        try:
            while True:
                one.recv(2048)
                heard[is_query] += 1
        except BlockingIOError:
            pass
        if is_query:
            poll.unregister(one)
            del sockets[number]
            one.close()
for name, asked, answered in zip(("conversations", "queries"), sent, heard):
    print(f"{name} {asked - answered} of {asked}")
TEXT

begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
    --control off --tun=lab-s --tun-setup=no-nat --tun-state off --allow-target 10.77.0.1
await server.out marline://
paths=()
for number in 1 2; do
    # shellcheck disable=SC2046
    begin "$anchor" "link-$number" "$marline" link --listen "10.201.$number.1:5000" --to 10.201.0.2:4433 $(flags "$link")
    await "link-$number.err" relaying
    paths+=(--path "c$number,server=10.201.$number.1:5000")
done
begin "$client" client "$marline" client --identity client --server "$(head -n1 server.out)" --control client.sock \
    --socks off --tun=lab-c --tun-setup "${paths[@]}"
await client.err 'packets of up to'
begin "$server" echo python3 echo.py
await echo.out ready

# 99th percentile (ms) and losses of a ping of eight seconds.
pinged() {
    ip netns exec "$client" ping -i 0.05 -c 160 -W 3 10.77.0.1 |
        awk -F'time=' '/time=/ { print $2 + 0 } ' | sort -n |
        awk '{ all[NR] = $1 } END { print all[int(NR * 0.99)], 160 - NR }'
}
# At most one in a thousand.
few() { local -a of; read -ra of <<<"$1"; ((1000 * of[1] <= of[3])) && echo "$1" || { echo "$1"; return 1; }; }
soon() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f ms, %.1f alone\n", b, a; exit b > a + 5 }'; }

stage="over ${link//,/ }"
read -r alone _ < <(pinged)
ip netns exec "$client" python3 load.py >load.out 2>load.err &
load=$!
sleep 1
read -r beside lost < <(pinged)
wait "$load" || cat load.err >&2
while read -r line; do
    try "lost: ${line%% *}" few "$line"
done <load.out
try 'lost: ping' few "ping $lost of 160"
try 'ping, 99th percentile' soon "$alone" "$beside"
exit "$failed"
