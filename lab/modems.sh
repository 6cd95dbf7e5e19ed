#!/usr/bin/env bash
# Paths as modems are: not there at the start, plugged in again, under another name; a network that comes a minute
# later; a server without an address. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

late=60 rounds=5
usage() {
    cat <<TEXT
Usage: lab/modems.sh [--brief] [STAGE...]

  --brief  a network that is 8 s late instead of $late, fewer rounds
  STAGE    late, names, server, plug, rename, choice, descriptors [default: all]

Ends with code 1 when something is slower than promised, or does not work. MARLINE is the program [default: $marline].
Needs root, ip, curl, python3 and /dev/net/tun.
TEXT
}

stages=()
while (($#)); do
    case $1 in
    --brief) late=8 rounds=2 ;;
    -h | --help) usage && exit 0 ;;
    -*) usage >&2 && exit 2 ;;
    *) stages+=("$1") ;;
    esac
    shift
done
[[ ${stages[*]} ]] || stages=(late names server plug rename choice descriptors)

needs curl python3
build
ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
ip -n "$server" route add default via 10.201.0.1
# Modems are plugged in below.
ip -n "$client" link del c1
ip -n "$client" link del c2

# Plugs a modem in: a device of this name, in the network of this number. Its index is new each time.
plug() {
    ip link add "$1" netns "$client" type veth peer name "a$2" netns "$anchor"
    ip -n "$anchor" address add "10.201.$2.1/24" dev "a$2"
    ip -n "$anchor" link set "a$2" up
    ip -n "$client" link set "$1" up
    configure "$1" "$2"
}
configure() {
    ip -n "$client" address add "10.201.$2.2/24" dev "$1"
    ip -n "$client" route add default via "10.201.$2.1" dev "$1" metric "$2"
}
unplug() { ip -n "$client" link del "$1"; }

serve() {
    begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" \
        --control server.sock --allow-target 10.201.0.2
    server_pid=${running[-1]}
    await server.out marline://
    string=$(head -n1 server.out)
}
dial() {
    begin "$client" client "$marline" client --identity client --control client.sock "$@"
    client_pid=${running[-1]}
}
# Ends a program by a signal and waits until it has gone.
end() {
    kill "-$2" "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
alive() { kill -0 "$1" 2>/dev/null || { echo "it has ended: $(tail -n1 client.err)"; return 1; }; }
# Seconds from $1, an $EPOCHREALTIME, to now; fails when they are more than $2.
took() { awk -v a="$1" -v b="$EPOCHREALTIME" -v most="$2" 'BEGIN { printf "%.2f s (at most %s)\n", b - a, most; exit b - a > most }'; }
# Waits until the file has the pattern, and says how long after $1 that was.
soon() {
    local began=$1 most=$2 file=$3 pattern=$4
    for _ in $(seq 200); do
        grep -qE -- "$pattern" "$file" && { took "$began" "$most"; return; }
        sleep 0.05
    done
    echo "never \`$pattern\` in $file"
    return 1
}
# The state of a path of the client.
state() {
    "$marline" status --control client.sock --json 2>/dev/null | python3 -c "
import json, sys
paths = [p for s in json.load(sys.stdin)['sessions'] for p in s['paths']]
print(next((p['state'] for p in paths if p['name'] == '$1'), 'none'))" 2>/dev/null || echo silent
}
# Waits until a path is in a state, and says how long after $1 that was.
becomes() {
    local began=$1 most=$2 name=$3 wanted=$4
    for _ in $(seq 400); do
        [[ $(state "$name") =~ ^($wanted)$ ]] && { took "$began" "$most"; return; }
        sleep 0.02
    done
    echo "$name is $(state "$name"), not $wanted"
    return 1
}
lines() { local count; count=$(grep -cE -- "$2" "$1" || true); [[ $count == "$3" ]] && echo "$count" || { echo "$count lines, not $3"; return 1; }; }

late() {
    stage='modems that are late'
    serve
    dial --server "$string" --socks 127.0.0.1:1080 --path wwan0 --path wwan1
    await client.err 'no network interface `wwan1`'
    sleep 4
    try 'it waits' alive "$client_pid"
    try 'and says so once for each' lines client.err 'no network interface' 2
    try 'a proxy refuses meanwhile' refuses
    plug wwan1 2
    try 'a modem comes' soon "$EPOCHREALTIME" 2 client.err 'session 0 with .* is open'
    plug wwan0 1
    try 'the other one' becomes "$EPOCHREALTIME" 1.5 wwan0 active
    end "$client_pid" TERM

    stage="no network for $late s"
    ip netns exec "$anchor" sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
    dial --server "$string" --socks off --path wwan0 --path wwan1
    sleep "$late"
    try 'it waits' alive "$client_pid"
    ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    try 'then it starts' soon "$EPOCHREALTIME" 2 client.err 'session 0 with .* is open'
    try 'over both' becomes "$EPOCHREALTIME" 2 wwan1 active
    try 'over QUIC' lines client.err 'TLS over TCP' 0
    end "$client_pid" TERM

    stage='ends at once'
    ip netns exec "$anchor" sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
    dial --server "$string" --socks off --path wwan0
    sleep 1
    local began=$EPOCHREALTIME
    end "$client_pid" INT
    try 'by Ctrl-C' took "$began" 1
    try 'after --wait 1s' gives_up
    ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    end "$server_pid" TERM
    unplug wwan0
    unplug wwan1
}
refuses() {
    local status=0
    within curl -s -m 3 --proxy socks5h://127.0.0.1:1080 http://10.201.0.2/ || status=$?
    # 97: the proxy said no.
    [[ $status == 97 ]] && echo 'at once' || { echo "curl ended with $status"; return 1; }
}
gives_up() {
    local began=$EPOCHREALTIME status=0
    within "$marline" client --identity client --server "$string" --control off --socks off --path wwan0 --wait 1s \
        2>wait.err || status=$?
    [[ $status == 1 ]] || { echo "code $status"; return 1; }
    took "$began" 1.5
}

names() {
    stage="the server's name"
    plug wwan0 1
    mkdir -p "/etc/netns/$client"
    # A name server that does not answer.
    echo 'nameserver 10.201.0.77' >"/etc/netns/$client/resolv.conf"
    echo '127.0.0.1 localhost' >"/etc/netns/$client/hosts"
    serve
    dial --server "${string/10.201.0.2/server.example}" --socks off --path wwan0
    sleep "$late"
    try 'it waits' alive "$client_pid"
    try 'and says so once' lines client.err 'name `server.example` cannot be looked up' 1
    echo '10.201.0.2 server.example' >>"/etc/netns/$client/hosts"
    try 'then it starts' soon "$EPOCHREALTIME" 2 client.err 'session 0 with .* is open'
    end "$client_pid" TERM
    end "$server_pid" TERM
    unplug wwan0
    rm -r "/etc/netns/$client"
}

server() {
    stage='a server without an address'
    plug wwan0 1
    ip -n "$server" address del 10.201.0.2/24 dev s0
    local listen
    for listen in 0.0.0.0:4433 10.201.0.2:4433; do
        begin "$server" server "$marline" server --identity server --listen "$listen" --allow-client "$key" \
            --control server.sock
        server_pid=${running[-1]}
        sleep 2
        try "$listen: it waits" alive "$server_pid"
        try 'and says so once' lines server.err 'printed as soon as' 1
        try 'its status' test "$("$marline" status --control server.sock --json | grep -c sessions)" -gt 0
        ip -n "$server" address add 10.201.0.2/24 dev s0
        ip -n "$server" route replace default via 10.201.0.1
        try 'then its string' soon "$EPOCHREALTIME" 2 server.out '@10.201.0.2:4433'
        dial --server "$(head -n1 server.out)" --socks off --path wwan0
        try 'with which it is reached' soon "$EPOCHREALTIME" 2 client.err 'session 0 with .* is open'
        end "$client_pid" TERM
        end "$server_pid" TERM
        ip -n "$server" address del 10.201.0.2/24 dev s0
    done
    ip -n "$server" address add 10.201.0.2/24 dev s0
    ip -n "$server" route replace default via 10.201.0.1
    unplug wwan0
}

for name in "${stages[@]}"; do
    [[ $(type -t "$name") == function ]] || { usage >&2; exit 2; }
    "$name"
done
exit "$failed"
