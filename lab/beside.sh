#!/usr/bin/env bash
# A live stream and a download beside whatever happens to one of two paths: they must not notice.
# See lab/README.md.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$here/plugs.sh"

rows=(nothing uplink downlink dark portal refused carrier stale stale_portal begins_portal begins_carrier plug rename
    late shrink standby)
usage() {
    cat <<TEXT
Usage: lab/beside.sh [--over 4|6|tcp]... [ROW...]

Two paths of 20 Mb/s, a live stream of 6 Mb/s up and a download of 8 Mb/s. After some seconds something happens to the
path that carries most of the stream. No gap in the stream may be above 100 ms, and nothing may be lost.

  --over  the protocol of the paths: QUIC over IPv4 or IPv6, or carrier=tcp [default: each]
  ROW     nothing   happens
          uplink    what the client sends is dropped, what the server sends is not
          downlink  the other way round
          dark      both
          portal    somebody else answers in the server's place (UDP and TCP)
          refused   the network says that there is no such port (ICMP)
          carrier   the device has lost its carrier, and keeps its address and route
          stale     what the client sends by the quicker path is dropped while nothing is sent; then the stream begins
          stale_portal, begins_portal, begins_carrier
                    the same with a portal, and with a portal or without a carrier from before the client starts
          plug      the device is deleted, and is there again
          rename    the same, with another name
          late      the device comes while the stream runs
          shrink    packets above 1300 bytes are dropped, without ICMP
          standby   the other path stands by, and this one goes dark
          [default: all]

Ends with code 1 when the stream noticed. MARLINE is the program [default: $marline]. Needs root, ip, tc, curl, nft and
python3.
TEXT
}
overs=() chosen=()
while (($#)); do
    case $1 in
    --over) overs+=("$2") && shift ;;
    -h | --help) usage && exit 0 ;;
    -*) usage >&2 && exit 2 ;;
    *) chosen+=("$1") ;;
    esac
    shift
done
((${#overs[@]})) || overs=(4 6 tcp)
((${#chosen[@]})) || chosen=("${rows[@]}")

needs tc curl nft python3
build
ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
ip -n "$server" route add default via 10.201.0.1
ip -n "$server" -6 address add fd42::2/64 dev s0 nodad
ip -n "$anchor" -6 address add fd42::1/64 dev a0 nodad
ip -n "$server" -6 route add default via fd42::1
ip -n "$client" link del c1
ip -n "$client" link del c2
# Segments leave one by one, as from a real interface, and are judged one by one in the middle.
ip -n "$server" link set s0 gso_max_segs 1
# What is fetched, at 8 Mb/s for as long as a row takes.
truncate -s 100M "$folder/body"
begin "$server" web python3 -u -m http.server --bind 10.201.0.2 --directory "$folder" 8000
await web.out Serving
kept=("${running[@]}")

# Both ends over two modems, a stream and a download.
name_of() { echo "wwan$(($1 - 1))"; }
fit() {
    plug_in "$(name_of "$1")" "$1"
    narrowed "$(name_of "$1")" "$1"
}
narrowed() {
    ip -n "$client" link set "$1" gso_max_segs 1
    ip netns exec "$client" tc qdisc add dev "$1" root tbf rate 20mbit burst 16kb latency 100ms
    ip netns exec "$anchor" tc qdisc add dev "a$2" root tbf rate 20mbit burst 16kb latency 100ms
}
seconds=9
start() {
    local number paths=()
    for number in 1 2; do
        # The path is its network, whatever the device is called.
        paths+=(--path "mac:$(mac_of $number),name=sim$number${carrier:+,carrier=$carrier}${options[number]:-}")
        [[ $number == 2 && $row == late ]] || fit "$number"
    done
    begin "$server" server "$marline" server --identity server --listen "$listen" --advertise "$address" \
        --allow-client "$key" --control server.sock --allow-target 10.201.0.2 --live udp://127.0.0.1:6000
    server_pid=${running[-1]}
    await server.out marline://
    [[ $row != begins_* ]] || "begin_${row#*_}" 2
    begin "$client" client "$marline" client --identity client --control client.sock --server "$(head -n1 server.out)" \
        --socks 127.0.0.1:1080 --live udp://127.0.0.1:5000 "${paths[@]}"
    client_pid=${running[-1]}
    for number in 1 2; do
        [[ $number == 2 && $row == @(late|begins_*) ]] ||
            becomes "$EPOCHREALTIME" 5 "sim$number" 'active|standby' >/dev/null
    done
    sleep 1
    case $row in
    stale) sleep 3; begin_uplink 1 ;;
    stale_*) sleep 3; "begin_${row#*_}" 1 ;;
    esac
    begin "$server" receive chrt -r 5 python3 "$here/live.py" receive 6000 $seconds 6
    receive_pid=${running[-1]}
    await receive.err ready
    begin "$client" fetch curl -s --limit-rate 1M --proxy socks5h://127.0.0.1:1080 -o /dev/null http://10.201.0.2:8000/body
    fetch_pid=${running[-1]}
    begin "$client" send chrt -r 5 python3 "$here/live.py" send 5000 $seconds 6
    [[ $row == stale* ]] || sleep 3
}
finish() {
    wait "$receive_pid" || true
    try 'the stream: gap, lost' unnoticed
    try 'the download goes on' kill -0 "$fetch_pid"
    if [[ ${SHOW:-} ]]; then "$marline" status --details --control client.sock; fi
    running=("${running[@]:${#kept[@]}}")
    [[ ${SHOW:-} ]] && cat client.err
    stop
    running=("${kept[@]}")
    unplug_all
}
unnoticed() {
    python3 -c "
import json
live = json.load(open('receive.out'))
print('{stall:.0f} ms, {lost} of {sent}; delays {p50}, {p99}, {worst} ms'.format(**live))
raise SystemExit(live['stall'] > 100 or live['worst'] > 250 or live['lost'] > 0 or not live['sent'])"
}
# The number of the path that sent more in 300 ms.
busier() {
    local before after
    before=("$(field sim1 sent_bytes)" "$(field sim2 sent_bytes)")
    sleep 0.3
    after=("$(field sim1 sent_bytes)" "$(field sim2 sent_bytes)")
    ((after[0] - before[0] >= after[1] - before[1])) && echo 1 || echo 2
}
# What is done to what the anchor passes on.
rules() {
    printf 'table inet lab {\nchain forward {\ntype filter hook forward priority 0\n%s\n}\n}\n' "$1" |
        ip netns exec "$anchor" nft -f -
}
unruled() { ip netns exec "$anchor" nft delete table inet lab; }
# Something happens to the busier path, and ends 3 s later.
happens() {
    local it before
    it=$(busier)
    before=$EPOCHREALTIME
    "begin_$row" "$it"
    # The end that sends where nothing arrives is the one that must notice.
    case $row in
    downlink) try "sim$it: in doubt" at_server "$before" 0.25 "$(seen_as "$it"):" 'suspect|dead' ;;
    *) try "sim$it: in doubt" becomes "$before" 0.25 "sim$it" 'suspect|dead' ;;
    esac
    sleep 2
    before=$EPOCHREALTIME
    "end_$row" "$it"
    try 'back' becomes "$before" "$back" "sim$it" active
    try 'at the server, too' at_server "$before" "$back" "$(seen_as "$it"):" active
}
seen_as() { [[ $family == 6 ]] && echo "[fd42:$1::2]" || echo "10.201.$1.2"; }
begin_uplink() { rules "iifname a$1 drop"; }
end_uplink() { unruled; }
begin_downlink() { rules "oifname a$1 drop"; }
end_downlink() { unruled; }
begin_dark() { rules "iifname a$1 drop; oifname a$1 drop"; }
end_dark() { unruled; }
# What comes by the path for the server is brought to somebody else, whatever connection it is of.
begin_portal() {
    begin "$anchor" portal python3 "$here/answerer.py" "${address//[\[\]]/}"
    portal_pid=${running[-1]}
    await portal.out ready
    ip -n "$anchor" -"$family" rule add iif "a$1" lookup 50
    ip -n "$anchor" -"$family" route add local "${address//[\[\]]/}" dev lo table 50
    rules "oifname a$1 drop"
}
end_portal() {
    try 'the portal answered' test "$(grep -c '^a ' portal.out)" -gt 0
    end "$portal_pid" KILL
    ip -n "$anchor" -"$family" rule del iif "a$1" lookup 50
    ip -n "$anchor" -"$family" route flush table 50
    unruled
}
begin_refused() {
    rules "iifname a$1 reject with icmpx port-unreachable; oifname a$1 drop"
}
end_refused() { unruled; }
# The other end of the cable is down.
begin_carrier() { ip -n "$anchor" link set "a$1" down; }
end_carrier() {
    ip -n "$anchor" link set "a$1" up
    # IPv6 addresses go with it.
    [[ $family == 4 ]] || ip -n "$anchor" address replace "fd42:$1::1/64" dev "a$1" nodad
}
begin_plug() { unplug "$(name_of "$1")"; }
end_plug() { fit "$1"; }
begin_rename() { unplug "$(name_of "$1")"; }
end_rename() {
    plug_in "wwan$(($1 + 4))" "$1"
    narrowed "wwan$(($1 + 4))" "$1"
}

# Both paths were as good when they were last seen; whichever the stream begins on, the dead one is
# found.
stale() { ends 1 uplink; }
stale_portal() { ends 1 portal; }
begins_portal() { ends 2 portal; }
begins_carrier() { ends 2 carrier; }
ends() {
    try "sim$1: in doubt" becomes "$EPOCHREALTIME" 0.5 "sim$1" 'validating|suspect|dead'
    sleep 4
    local before=$EPOCHREALTIME
    "end_$2" "$1"
    try 'back' becomes "$before" "$((back + 1))" "sim$1" active
}
nothing() { sleep 4; }
uplink() { happens; }
downlink() { happens; }
dark() { happens; }
portal() { happens; }
refused() { happens; }
carrier() { happens; }
plug() { happens; }
rename() { happens; }
late() {
    local before=$EPOCHREALTIME
    fit 2
    try 'it comes' becomes "$before" 1.5 sim2 active
}
# Its packets shrink both ways, and the size is found.
shrink() {
    local it
    it=$(busier)
    rules "iifname a$it meta length > 1300 drop; oifname a$it meta length > 1300 drop"
    sleep 3
    unruled
    try "sim$it stays" becomes "$EPOCHREALTIME" 0.5 "sim$it" active
}
standby() {
    local before=$EPOCHREALTIME
    begin_dark 1
    try 'sim1: in doubt' becomes "$before" 0.25 sim1 'suspect|dead'
    sleep 2
    before=$EPOCHREALTIME
    end_dark 1
    try 'back' becomes "$before" "$back" sim1 active
    try 'the other stands by' becomes "$EPOCHREALTIME" 1 sim2 standby
}

for over in "${overs[@]}"; do
    # The kernel's TCP tries again after twice as long each time: after 2 s of darkness up to 1.6 s
    # later.
    [[ $over == tcp ]] && back=3 || back=2
    carrier= family=4 listen=0.0.0.0:4433 address=10.201.0.2
    case $over in
    4) ;;
    6) family=6 listen='[::]:4433' address='[fd42::2]' ;;
    tcp) carrier=tcp ;;
    *) usage >&2 && exit 2 ;;
    esac
    for row in "${chosen[@]}"; do
        [[ " ${rows[*]} " == *" $row "* ]] || { usage >&2; exit 2; }
        stage="$row, $over"
        options=()
        [[ $row == standby ]] && options[2]=,standby
        start
        "$row"
        finish
    done
done
exit "$failed"
