#!/usr/bin/env bash
# Runs the commands of README.md's "Install it" as they stand there, in two clean Debian systems
# with systemd (systemd-nspawn), each in a network namespace:
#
#   client ── wlan0, wwan0 ── anchor ── eth0 ── server
#
# `marline-pub:…` and `marline://…` are what the commands before have printed; `marline.deb` is DEB,
# or the newest of dist/. Then a page comes over the proxy, both links carry, one may go, the
# services run as the user marline with three capabilities, come back after a crash, and end in
# order. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

deb=${DEB:-$(ls -t "$here"/../dist/marline_*_"$(dpkg --print-architecture 2>/dev/null)".deb 2>/dev/null | head -1)}
[[ -f $deb ]] || { echo "error: no package: packaging/deb.sh builds one, or set DEB" >&2; exit 1; }
deb=$(realpath "$deb")
page=$(realpath "$here/../README.md")
marline=/bin/true
needs curl python3 systemd-nspawn nsenter
folder=$(mktemp -d)
clean=${DEBIAN:-$folder/clean}
machines=()
end() {
    set +e
    local side
    for side in "${machines[@]}"; do
        kill -RTMIN+4 "$(leader "$side")" 2>/dev/null # systemd's signal to power off
    done
    for side in "${machines[@]}"; do
        for _ in $(seq 100); do leader "$side" >/dev/null || break; sleep 0.1; done
        [[ -z ${machine_pid[$side]:-} ]] || kill "${machine_pid[$side]}" 2>/dev/null
        wait "${machine_pid[$side]:-}" 2>/dev/null
        umount "$folder/$side/root" "$folder/$side/upper"
    done
    clean_up
}
declare -A machine_pid
# The first process within a machine.
leader() { pgrep -P "${machine_pid[$1]}" | head -1 | grep .; }
trap end EXIT
trap 'exit 130' INT TERM
"$here/../packaging/debian-root.sh" "$clean" || { [[ $? == 3 ]] && exit 0 || exit 1; }

for name in $client $anchor $server; do
    ip netns add "$name"
    ip -n "$name" link set lo up
done
wire "$client" wlan0 192.0.2.2/24 "$anchor" a1 192.0.2.1/24
wire "$client" wwan0 203.0.113.2/24 "$anchor" a2 203.0.113.1/24
wire "$server" eth0 198.51.100.7/24 "$anchor" a0 198.51.100.1/24
ip -n "$client" route add default via 192.0.2.1 dev wlan0 metric 100
ip -n "$client" route add default via 203.0.113.1 dev wwan0 metric 200
ip -n "$server" route add default via 198.51.100.1
ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
ip -n "$anchor" address add 1.1.1.1/32 dev lo
echo hello >"$folder/index.html"
begin "$anchor" web python3 -m http.server 80 --directory "$folder"

# A system of its own, with the clean one below what it writes.
boot() {
    local side=$1 namespace=$2
    mkdir -p "$folder/$side"/{root,upper}
    mount -t tmpfs none "$folder/$side/upper"
    mkdir "$folder/$side/upper"/{u,w}
    mount -t overlay overlay -o "lowerdir=$clean,upperdir=$folder/$side/upper/u,workdir=$folder/$side/upper/w" "$folder/$side/root"
    cp "$deb" "$folder/$side/root/root/marline.deb"
    machines+=("$side")
    systemd-nspawn --quiet --directory="$folder/$side/root" --machine="$side-$$" --register=no --keep-unit --boot \
        --network-namespace-path="/run/netns/$namespace" --capability=CAP_NET_ADMIN,CAP_NET_RAW --console=pipe \
        >"$folder/$side.boot" 2>&1 </dev/null &
    machine_pid[$side]=$!
    for _ in $(seq 300); do
        if [[ $(as "$side" 'systemctl is-system-running' 2>/dev/null) =~ running|degraded ]]; then
            # As it is outside of containers: udev lets everybody open that device, and sysctl(8)
            # works.
            as "$side" 'chmod 666 /dev/net/tun; mount -o remount,bind,rw /proc/sys' && return
        fi
        sleep 0.2
    done
    tail -20 "$folder/$side.boot" >&2
    skip "systemd does not boot in a container here"
}
# A command in a machine.
as() {
    nsenter --target "$(leader "$1")" --all -- env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
        LC_ALL=C.UTF-8 bash -c "cd /root; $2"
}
boot server "$server"
boot client "$client"

key='' string='' count=0
while IFS= read -r line; do
    [[ $line =~ ^(server|client)#\ (.*)$ ]] || continue
    name=${BASH_REMATCH[1]} command=${BASH_REMATCH[2]}
    count=$((count + 1)) stage="$count: $name"
    words=${command//marline-pub:…/$key}
    words=${words//marline:\/\/…/\'$string\'}
    if as "$name" "$words" >"$folder/out" 2>"$folder/err" </dev/null; then
        say "${command:0:60}" "$(tail -1 "$folder/out" | cut -c 1-40)"
        key=$(grep -o 'marline-pub:[a-z0-9]*' "$folder/out" || echo "$key")
        string=$(grep -o 'marline://.*' "$folder/out" || echo "$string")
    else
        say "${command:0:60}" "FAILED: $(tail -3 "$folder/out" "$folder/err")"
    fi
done < <(sed -n "/^## Install it/,/^## Four doors/p" "$page")
stage='all'
if ((count == 5)); then say 'commands' "$count"; else say 'commands' "FAILED: $count"; fi

stage='bonded'
# A line like that in what a command in a machine prints, within 30 s.
shows() {
    local _
    for _ in $(seq 60); do
        # Read to the end: with -q the command would be ended by its next line, and count as failed.
        as "$1" "$2" 2>/dev/null | grep -E -- "$3" >/dev/null && return
        sleep 0.5
    done
    echo "no $3 in:"
    as "$1" "$2; journalctl -n 20 --no-pager"
    return 1
}
fetched() { as client 'curl -sS --max-time 20 --proxy socks5h://127.0.0.1:1080 http://1.1.1.1/'; }
try 'one path is active' shows client 'marline status' 'wlan0 .*active|active.*wlan0|^ *wlan0'
try 'the other, too' shows client 'marline status' '^ *wwan0'
try 'page by the proxy' fetched
try 'the server knows the client' shows server 'marline clients list' 'connected +van'
ip -n "$client" link set wlan0 down
try 'page without the first link' fetched
ip -n "$client" link set wlan0 up
ip -n "$client" route add default via 192.0.2.1 dev wlan0 metric 100

stage='services'
for words in 'server marline-server' 'client marline-client@main'; do
    read -r side unit <<<"$words"
    try "$unit is active" shows "$side" "systemctl is-active $unit" '^active'
    try "$unit says how it is" shows "$side" "systemctl show -p StatusText $unit" 'path'
    try "$unit is marline's" shows "$side" "ps -o user= -p \$(systemctl show -p MainPID --value $unit) 2>/dev/null || stat -c %U /proc/\$(systemctl show -p MainPID --value $unit)" '^marline'
    try "$unit has three capabilities" shows "$side" "grep CapEff /proc/\$(systemctl show -p MainPID --value $unit)/status" '0000000000003400'
    try "$unit gets no privileges" shows "$side" "grep NoNewPrivs /proc/\$(systemctl show -p MainPID --value $unit)/status" '1$'
    try "$unit reloads" as "$side" "systemctl reload $unit && systemctl is-active $unit"
    try "$unit comes back from SIGKILL" shows "$side" "n=\$(systemctl show -p NRestarts --value $unit); [ \"\$n\" -gt 0 ] || systemctl kill -s KILL $unit; echo restarts \$n; systemctl is-active $unit" 'restarts [1-9]'
done
try 'page after both were killed' shows client 'curl -sS --max-time 5 --proxy socks5h://127.0.0.1:1080 http://1.1.1.1/' hello

stage='with a tunnel'
for words in 'server server marline-server' 'client client-main marline-client@main'; do
    read -r side file unit <<<"$words"
    add='tun = "marline0"\ntun-setup = "on"'
    [[ $side == server ]] || add="$add"'\ntun-route = ["1.1.1.1/32"]'
    try "$unit starts again" as "$side" "printf '$add\n' >>/etc/marline/$file.toml && systemctl restart $unit ||
        { journalctl -u $unit -n 8 --no-pager -o cat; false; }"
done
try 'page without the proxy' shows client 'curl -sS --max-time 5 --interface marline0 http://1.1.1.1/' hello
try 'by the tunnel' shows client 'ip route get 1.1.1.1' marline0
stage='at the end'
for words in 'server marline-server' 'client marline-client@main'; do
    read -r side unit <<<"$words"
    try "$unit stops in order" as "$side" "systemctl stop $unit && systemctl show -p Result --value $unit | grep -x success"
    try "nothing of its tunnel is left" as "$side" "! ip link show marline0 2>/dev/null && ! nft list ruleset | grep marline &&
        grep -qx 0 /proc/sys/net/ipv4/ip_forward && echo ok"
done
exit "$failed"
