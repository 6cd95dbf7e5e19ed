#!/usr/bin/env bash
# Both ends as the systemd units start them: a user of their own with CAP_NET_ADMIN, CAP_NET_RAW and
# CAP_NET_BIND_SERVICE as ambient capabilities, and no_new_privs. Everything that needs rights is
# asked for: paths bound to interfaces and marked, TUN devices, addresses, routes and rules,
# forwarding, address translation, the tables of nftables through which --tun-setup=gateway,strict
# lets nothing else out, and a published port below 1024. It is all undone in the end. See
# lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

needs ping curl nft python3 setpriv
build
routed
user=64999
chmod 755 "$folder" && chown $user "$folder"
install -m 755 "$marline" "$folder/marline"
install -d -m 700 -o $user "$folder/state"
chown $user client server
# udev lets everybody open that device, as its packets need CAP_NET_ADMIN anyway; without udev it is
# often root's alone.
mknod -m 666 tun c 10 200
# A program of that user's, as systemd starts it; the mount is of its own namespace of mounts.
caps=+net_admin,+net_raw,+net_bind_service
as() {
    local namespace=$1 log=$2
    shift 2
    begin "$namespace" "$log" sh -c 'mount --bind "$0" /dev/net/tun && exec "$@"' "$folder/tun" setpriv --reuid $user --regid $user --clear-groups --inh-caps=$caps --ambient-caps=$caps \
        --bounding-set=-all,$caps --no-new-privs env XDG_STATE_HOME="$folder/state" HOME=/nonexistent "$folder/marline" "$@"
}
for number in 1 2; do
    ip -n "$client" route add default via "10.201.$number.1" dev "c$number" metric "$((10 + number))"
done
ip -n "$server" route add default via 10.201.0.1
ip -n "$anchor" address add 8.8.8.8 dev lo
echo hello >page
begin "$anchor" web python3 -m http.server 80 --directory "$folder"
begin "$client" service python3 -m http.server 8000 --bind 127.0.0.1 --directory "$folder"
settings() {
    local side
    for side in $client $server; do
        ip -n "$side" rule
        ip -n "$side" route show table all | grep -v fe80:: | sort
        ip netns exec "$side" nft list ruleset
        ip netns exec "$side" cat /proc/sys/net/ipv4/ip_forward
    done
}
before=$(settings)

as "$server" server server --identity server --allow-client "$key" --listen 10.201.0.2:4433 --tun --tun-setup \
    --allow-publish "$key=tcp:443" --control server.sock
await server.out marline://
as "$client" client client --server "$(head -1 server.out)" --identity client --path c1 --path c2 --tun \
    --tun-setup=gateway,strict --tun-route 0.0.0.0/0 --publish tcp:443=127.0.0.1:8000 --control client.sock
await client.err 'packets of up to'

stage='as a user of its own'
of() { tr '\0' '\n' <"/proc/$1/status" | sed -n "s/^$2:\s*//p"; }
pid=${running[-1]}
[[ $(of "$pid" Uid) == "$user"* && $(of "$pid" NoNewPrivs) == 1 && $(of "$pid" CapEff) == 0000000000003400 ]] &&
    say 'user and capabilities' "$(of "$pid" CapEff)" || say 'user and capabilities' "FAILED: $(of "$pid" CapEff)"
shown=$(ip netns exec "$client" nft list ruleset)
[[ $shown == *marline* ]] && say 'its own table of rules' ok || say 'its own table of rules' "FAILED: $shown"
try 'two paths' shows '^ *c2'
try 'ping through the tunnel' within sh -c 'ping -qc 3 8.8.8.8 >/dev/null'
try 'page through the tunnel' within curl -sS http://8.8.8.8/page
try 'published port 443' ip netns exec "$anchor" curl -sS --max-time 20 http://10.201.0.2:443/page
ip -n "$client" link set c1 down
try 'ping over the other path' within sh -c 'ping -qc 3 -W 5 8.8.8.8 >/dev/null'
ip -n "$client" link set c1 up
ip -n "$client" route add default via 10.201.1.1 dev c1 metric 11 2>/dev/null || true
ip -n "$client" route add 10.201.0.0/24 via 10.201.1.1 dev c1 metric 1 2>/dev/null || true
stage='at the end'
stop
after=$(settings)
[[ $before == "$after" ]] && say 'all is as before' ok || say 'all is as before' "FAILED: $(diff <(echo "$before") <(echo "$after") | head -5)"
exit "$failed"
