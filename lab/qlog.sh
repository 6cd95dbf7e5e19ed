#!/usr/bin/env bash
# The files of --qlog, of a client, a server and the simulator, against the draft's schema and ours:
# python3-jsonschema.
set -euo pipefail
marline=$(realpath "${MARLINE:-target/release/marline}")
lab=$(realpath "$(dirname "$0")")
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -r "$folder"' EXIT
export XDG_RUNTIME_DIR=$folder HOME=$folder XDG_CONFIG_HOME= XDG_STATE_HOME=
cd "$folder"
touch client.log
"$marline" identity new server.key >/dev/null
key=$("$marline" identity new client.key)
head -c 3000000 /dev/urandom >body
python3 -u -m http.server --bind 127.0.0.1 0 >http.log 2>&1 &
until port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' http.log) && [ -n "$port" ]; do sleep 0.1; done
"$marline" server --identity server.key --allow-client "$key" --listen 127.0.0.1:0 --allow-target 127.0.0.1 \
    --control off --qlog server >connection 2>server.log &
server=$!
until [ -s connection ]; do sleep 0.1; done
"$marline" client --identity client.key --server "$(cat connection)" --path 127.0.0.1,name=cable \
    --path 127.0.0.2,name=modem --socks 127.0.0.1:0 --control control --qlog client 2>client.log &
client=$!
until socks=$(sed -n 's/.*SOCKS.* at \(127[0-9.:]*\).*/\1/p' client.log) && [ -n "$socks" ]; do sleep 0.1; done
"$marline" record short.jsonl --seconds 3 --control control &
record=$!
curl --silent --fail --retry 20 --retry-delay 1 --retry-all-errors --socks5-hostname "$socks" "http://127.0.0.1:$port/body" | cmp - body
wait $record
grep -q '"path":"cable"' short.jsonl
kill $client && wait $client
kill $server && wait $server
[ "$(stat -c %a client/*.sqlog | sort -u)" = 600 ]
"$lab/qlog.py" client/*.sqlog
"$lab/qlog.py" server/*.sqlog
for word in marline:packet_sent marline:path_assigned marline:metrics_updated marline:flow_opened; do
    grep -q "$word" client/*.sqlog
done
! grep -q "$port\|socks\|127.0.0.1" client/*.sqlog
for scenario in handover blocks bulk-and-live; do
    "$marline" sim run "examples/$scenario" --seeds 1 --duration 8s --qlog "sim-$scenario" >/dev/null
    "$lab/qlog.py" "sim-$scenario"/*.sqlog
done
echo "qlog holds"
