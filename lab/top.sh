#!/usr/bin/env bash
# `marline top` in a terminal of 80 x 24, while a client waits for its server and after it came.
set -euo pipefail
marline=$(realpath "${MARLINE:-target/release/marline}")
folder=$(mktemp -d)
session=marline-top-$$
trap 'tmux kill-session -t $session 2>/dev/null || true; kill $(jobs -p) 2>/dev/null || true; wait; rm -r "$folder"' EXIT
export XDG_RUNTIME_DIR=$folder HOME=$folder XDG_CONFIG_HOME= XDG_STATE_HOME=

"$marline" identity new "$folder/server.key" >/dev/null
key=$("$marline" identity new "$folder/client.key")
"$marline" server --identity "$folder/server.key" --allow-client "$key" --listen 127.0.0.1:0 \
    >"$folder/connection" 2>/dev/null &
server=$!
until [ -s "$folder/connection" ]; do sleep 0.1; done
"$marline" client --identity "$folder/client.key" --server "$(cat "$folder/connection")" --path 127.0.0.1,name=cable \
    --path 127.0.0.2,name=modem,standby,cost=2 --socks off --control "$folder/control" 2>"$folder/client.log" &
until grep -q "path is active" "$folder/client.log"; do sleep 0.1; done

tmux new-session -d -s "$session" -x 80 -y 24 "'$marline' top --control '$folder/control'; echo it ended with \$?; sleep 60"
screen() { tmux capture-pane -p -t "$session"; }
# Waits until the screen has a line like this.
shows() {
    for _ in $(seq 100); do
        if screen | grep -q -- "$1"; then return; fi
        sleep 0.2
    done
    screen
    echo "the screen never showed: $1" >&2
    exit 1
}
shows "marline client .* established"
shows "Nothing is slow: 1 link in use"
shows "cable .* active"
shows "modem .* standby"
shows "what happened"
screen
"$marline" paths standby modem --off --control "$folder/control"
shows "modem is in use"
kill -KILL $server
shows "no path that works\|no link works\|There is no session yet"
tmux send-keys -t "$session" q
shows "it ended with 0"
echo "top holds"
