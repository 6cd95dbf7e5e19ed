#!/usr/bin/env bash
# Runs the commands of docs/SITE.md as they stand there, between network namespaces:
#
#   host ── lan0 ── gateway ── dsl0, wwan0 ── anchor ── eth0 ── server
#
# `marline-pub:…` and `marline://…` are what the commands before have printed. The anchor is the world: it has 1.1.1.1,
# and 9.9.9.9, a name server that knows example.net. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

page=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../docs/SITE.md")
needs ping curl python3
host=marline-lab-$$-h
folder=$(mktemp -d)
trap 'clean_up; ip netns del $host 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
for name in $client $anchor $server $host; do
    ip netns add "$name"
    ip -n "$name" link set lo up
done
wire "$client" dsl0 192.0.2.2/24 "$anchor" a1 192.0.2.1/24
wire "$client" wwan0 203.0.113.2/24 "$anchor" a2 203.0.113.1/24
wire "$server" eth0 198.51.100.7/24 "$anchor" a0 198.51.100.1/24
wire "$client" lan0 192.168.7.1/24 "$host" h0 192.168.7.2/24
for words in "$client 192.0.2.1 dsl0 100" "$client 203.0.113.1 wwan0 200" "$server 198.51.100.1 eth0 100" \
    "$host 192.168.7.1 h0 100"; do
    read -r side router device metric <<<"$words"
    ip -n "$side" route add default via "$router" dev "$device" metric "$metric"
done
ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
ip -n "$anchor" address add 1.1.1.1/32 dev lo
ip -n "$anchor" address add 9.9.9.9/32 dev lo
cd "$folder"
echo hello >index.html
begin "$anchor" web python3 -m http.server 80 --directory "$folder"
begin "$anchor" names python3 -u "$here/resolver.py" 9.9.9.9 example.net 1.1.1.1
await names.out ready
mkdir -p bin "/etc/netns/$client"
cp /etc/resolv.conf "/etc/netns/$client/resolv.conf"
ln -s "$marline" bin/marline

# A command in its namespace, with a home of its own; instead of this shell if `instead` is `exec`.
instead=
as() {
    local name=$1 side
    shift
    case $name in
    server) side=$server ;;
    gateway) side=$client ;;
    host) side=$host ;;
    esac
    mkdir -p "$folder/$name"
    $instead ip netns exec "$side" env -i HOME="$folder/$name" XDG_RUNTIME_DIR="$folder/$name" PATH="$folder/bin:$PATH" \
        bash -c "cd \$HOME; exec $*"
}

key='' string='' count=0
while IFS= read -r line; do
    [[ $line =~ ^(server|gateway|host)#\ (.*)$ ]] || continue
    name=${BASH_REMATCH[1]} command=${BASH_REMATCH[2]}
    count=$((count + 1)) stage="$count: $name"
    words=${command//marline-pub:…/$key}
    words=${words//marline:\/\/…/\'$string\'}
    if [[ $words == *' &' ]]; then
        instead=exec
        as "$name" "${words% &}" >"$name.out" 2>"$name.err" &
        running+=($!)
        instead=
        case $name in
        server) await server.out marline:// && string=$(head -1 server.out) ;;
        gateway) await gateway.err 'packets of up to' ;;
        esac
        say "${command:0:60}" ok
    elif result=$(as "$name" "$words" 2>&1); then
        # The gateway's key is the last one.
        key=$(grep -o 'marline-pub:[a-z0-9]*' <<<"$result" || echo "$key")
        say "${command:0:60}" "${result##*$'\n'}"
    else
        # Warnings of the doctor are no failure.
        [[ $? == 1 && $command == *doctor* ]] && say "${command:0:60}" 'warnings' ||
            { say "${command:0:60}" "FAILED: $result"; cat ./*.err; }
    fi
done <"$page"
stage='all'
if ((count > 0 && count <= 15)); then say 'commands' "$count"; else say 'commands' "FAILED: $count"; fi
exit "$failed"
