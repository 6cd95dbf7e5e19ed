#!/usr/bin/env bash
# What a client and a server say to Prometheus: promtool checks the text of version 0.0.4; of
# OpenMetrics, which it does not read, is looked at whether it comes and is complete.
set -euo pipefail
marline=${MARLINE:-target/release/marline}
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -r "$folder"' EXIT
export XDG_RUNTIME_DIR=$folder HOME=$folder XDG_CONFIG_HOME= XDG_STATE_HOME=

"$marline" identity new "$folder/server.key" >/dev/null
key=$("$marline" identity new "$folder/client.key")
"$marline" server --identity "$folder/server.key" --allow-client "$key" --listen 127.0.0.1:0 \
    --live udp://127.0.0.1:9,name=cam --metrics 127.0.0.1:0 >"$folder/connection" 2>"$folder/server.log" &
until [ -s "$folder/connection" ]; do sleep 0.1; done
"$marline" client --identity "$folder/client.key" --server "$(cat "$folder/connection")" --path 127.0.0.1,budget=1GB \
    --socks off --live udp://127.0.0.1:47521,name=cam,target=2mbps --metrics 127.0.0.1:0 2>"$folder/client.log" &
until grep -q "path is active" "$folder/client.log"; do sleep 0.1; done
exec 3>/dev/udp/127.0.0.1/47521
for _ in $(seq 100); do printf '%0500d' 7 >&3; sleep 0.01; done
sleep 1

for end in client server; do
    url=$(grep -o 'http://[^ ]*/metrics' "$folder/$end.log")
    curl -fsS "$url" >"$folder/plain"
    # promtool knows the older format; it complains on standard error and by its exit code.
    promtool check metrics <"$folder/plain"
    curl -fsS -H 'Accept: application/openmetrics-text' "$url" | tail -1 | grep -qx '# EOF'
    echo "$end: $(grep -c '^# TYPE' "$folder/plain") metrics, none of which promtool objects to"
done
