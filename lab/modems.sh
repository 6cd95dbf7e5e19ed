#!/usr/bin/env bash
# Paths as modems are: not there at the start, plugged in again, under another name; a network that comes a minute
# later; a server without an address. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$here/plugs.sh"

late=60 rounds=5 brief=
usage() {
    cat <<TEXT
Usage: lab/modems.sh [--brief] [STAGE...]

  --brief  a network that is 8 s late instead of $late, fewer rounds
  STAGE    late, names, server, plug, rename, restart, descriptors,
           blocked, cut, policed, lossy, outages, batches, nat64, dear, sources, idle, asleep, often
           [default: all; with --brief all but policed, lossy, idle, asleep and often]

Ends with code 1 when something is slower than promised, or does not work. MARLINE is the program [default: $marline].
Needs root, ip, curl, nft, python3 and /dev/net/tun.
TEXT
}

stages=()
while (($#)); do
    case $1 in
    --brief) late=8 rounds=2 brief=yes ;;
    -h | --help) usage && exit 0 ;;
    -*) usage >&2 && exit 2 ;;
    *) stages+=("$1") ;;
    esac
    shift
done
if ((${#stages[@]} == 0)); then
    stages=(late names server plug rename restart descriptors blocked cut outages batches nat64 dear sources)
    [[ $brief ]] || stages+=(policed lossy idle asleep often)
fi

needs curl nft python3
build
ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
ip -n "$server" route add default via 10.201.0.1
# Modems are plugged in below.
ip -n "$client" link del c1
ip -n "$client" link del c2

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
# Bytes that the server has from an address.
received() {
    "$marline" status --control server.sock --json | python3 -c "
import json, sys
paths = [p for s in json.load(sys.stdin)['sessions'] for p in s['paths']]
print(sum(p['received_bytes'] for p in paths if p['name'].startswith('$1:')))"
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
    plug_in wwan1 2
    try 'a modem comes' soon "$EPOCHREALTIME" 2 client.err 'session 0 with .* is open'
    plug_in wwan0 1
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
    try 'over QUIC' lines client.err 'using TLS over TCP' 0
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
    rm -rf state
    plug_in wwan0 1
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

    stage='a resolver behind one link'
    plug_in wwan1 2
    echo 'nameserver 10.201.0.2' >"/etc/netns/$client/resolv.conf"
    echo '127.0.0.1 localhost' >"/etc/netns/$client/hosts"
    # The first link, by which the system asks, is dead.
    ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    chain forward { type filter hook forward priority 0; iifname "a1" drop; oifname "a1" drop; }
}
RULES
    begin "$server" resolver python3 -u "$here/resolver.py" 10.201.0.2 server.example 10.201.0.2
    local resolver=${running[-1]} name=${string/10.201.0.2/server.example}
    await resolver.out ready
    rm -rf state
    dial --server "$name" --socks off --path wwan0 --path wwan1
    try 'it starts' soon "$EPOCHREALTIME" 2 client.err 'session 0 with .* is open'
    try 'what was found is kept' soon "$EPOCHREALTIME" 1 state/marline/addresses '^10.201.0.2 server.example$'
    end "$client_pid" TERM
    end "$resolver" KILL
    dial --server "$name" --socks off --path wwan0 --path wwan1
    try 'and again without a resolver' soon "$EPOCHREALTIME" 2 client.err 'session 0 with .* is open'
    end "$client_pid" TERM
    rm -rf state
    dial --server "$name" --socks off --path wwan0 --path wwan1
    sleep 3
    try 'but for what is kept: not' lines client.err 'session 0 with .* is open' 0
    end "$client_pid" TERM
    ip netns exec "$anchor" nft delete table inet lab
    end "$server_pid" TERM
    unplug wwan0
    unplug wwan1
    rm -r "/etc/netns/$client"
}

server() {
    stage='a server without an address'
    plug_in wwan0 1
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

# A session over both modems, over what paths say.
session() {
    plug_in wwan0 1
    plug_in wwan1 2
    serve
    dial --server "$string" "$@"
}
over() {
    end "$client_pid" TERM
    end "$server_pid" TERM
    unplug_all
}

plug() {
    stage='plugged in again'
    session --socks 127.0.0.1:1080 --path wwan0 --path wwan1
    becomes "$EPOCHREALTIME" 5 wwan0 active >/dev/null
    becomes "$EPOCHREALTIME" 5 wwan1 active >/dev/null
    local round before open
    sleep 5
    open=$(descriptors_of "$client_pid")
    for round in $(seq "$rounds"); do
        before=$EPOCHREALTIME
        unplug wwan0
        try "idle, $round: gone" becomes "$before" 1 wwan0 'suspect|dead'
        sleep 1
        plug_in wwan0 1
        try 'back' becomes "$EPOCHREALTIME" 1 wwan0 active
    done
    # Its address alone, and its route alone.
    ip -n "$client" address del 10.201.1.2/24 dev wwan0
    try 'address gone' becomes "$EPOCHREALTIME" 1 wwan0 'suspect|dead'
    sleep 1
    configure wwan0 1
    try 'back' becomes "$EPOCHREALTIME" 1 wwan0 active
    ip -n "$client" route del default dev wwan0
    try 'route gone' becomes "$EPOCHREALTIME" 1 wwan0 'suspect|dead'
    sleep 1
    ip -n "$client" route add default via 10.201.1.1 dev wwan0 metric 1
    try 'back' becomes "$EPOCHREALTIME" 1 wwan0 active
    stage='under load'
    head -c 400000000 /dev/zero >"$folder/body"
    begin "$server" web python3 -u -m http.server --bind 10.201.0.2 --directory "$folder" 8000
    local web=${running[-1]}
    await web.out Serving
    begin "$client" load curl -s --limit-rate 4M --proxy socks5h://127.0.0.1:1080 -o /dev/null http://10.201.0.2:8000/body
    local load=${running[-1]}
    sleep 1
    for round in $(seq "$rounds"); do
        before=$EPOCHREALTIME
        unplug wwan0
        try "$round: gone" becomes "$before" 1 wwan0 'suspect|dead'
        sleep 1
        plug_in wwan0 1
        try 'back' becomes "$EPOCHREALTIME" 1 wwan0 active
        sleep 1
    done
    try 'the download goes on' kill -0 "$load"
    end "$load" TERM
    end "$web" KILL
    stage='both at once'
    unplug wwan0
    unplug wwan1
    sleep 2
    plug_in wwan0 1
    plug_in wwan1 2
    before=$EPOCHREALTIME
    try 'the first is back' becomes "$before" 1 wwan0 active
    try 'the second too' becomes "$before" 1.5 wwan1 active
    try 'it is the same session' lines client.err 'session 0 is over' 0
    # A connection that was given up for another lingers until its last packets have come.
    sleep 5
    try 'descriptors are as before' no_more "$(descriptors_of "$client_pid")" "$open"
    over
}

rename() {
    stage='under another name'
    session --socks off --path 'wwan*,cost=2' --path "mac:$(mac_of 2),name=sim2"
    becomes "$EPOCHREALTIME" 5 'wwan*' active >/dev/null
    unplug wwan0
    try 'gone' becomes "$EPOCHREALTIME" 1 'wwan*' 'suspect|dead'
    try 'status says what there is' shows 'fits `wwan\*`; there are lo, wwan1'
    plug_in wwan2 1
    try 'back as wwan2' becomes "$EPOCHREALTIME" 1 'wwan*' active
    try 'at its cost' costs 'wwan*' 2
    over

    stage='two swap names'
    session --socks off --path "mac:$(mac_of 1),cost=2,name=sim1" --path "mac:$(mac_of 2),name=sim2"
    becomes "$EPOCHREALTIME" 5 sim1 active >/dev/null
    becomes "$EPOCHREALTIME" 5 sim2 active >/dev/null
    unplug wwan0
    unplug wwan1
    sleep 1
    plug_in wwan1 1
    plug_in wwan0 2
    try 'both are back' becomes "$EPOCHREALTIME" 1 sim1 active
    becomes "$EPOCHREALTIME" 1 sim2 active >/dev/null
    try 'each at its cost' costs sim1 2
    try 'over its own modem' goes_by sim1 10.201.1.2
    over

    stage='by USB port'
    local tree=$folder/sys
    mkdir -p "$tree/class/net/wwan0" "$tree/devices/usb1/1-1/1-1.4/1-1.4:1.0"
    ln -s "$tree/devices/usb1/1-1/1-1.4/1-1.4:1.0" "$tree/class/net/wwan0/device"
    session --socks off --sysfs "$tree" --path usb:1-1.4 --path wwan1
    try 'dialled' becomes "$EPOCHREALTIME" 5 usb:1-1.4 active
    mv "$tree/class/net/wwan0" "$tree/class/net/wwan2"
    unplug wwan0
    sleep 1
    plug_in wwan2 1
    try 'back as wwan2' becomes "$EPOCHREALTIME" 1 usb:1-1.4 active
    over

    stage='all but one'
    session --socks off --path 'all,except=wwan1,cost=1'
    try 'the first' becomes "$EPOCHREALTIME" 5 all active
    plug_in wwan5 5
    try 'one more comes' becomes "$EPOCHREALTIME" 1.5 'all#2' active
    try 'and is not removed alone' is_kept 'all#2'
    try 'at the same cost' costs 'all#2' 1
    unplug wwan5
    sleep 0.5
    try 'and goes' test "$(state 'all#2')" == none
    over
}
# The path that says which interfaces fit would add it again.
is_kept() {
    ! "$marline" paths remove "$1" --control client.sock 2>kept.err
    grep -o 'its interface fits path all' kept.err
    becomes "$EPOCHREALTIME" 1 "$1" active >/dev/null
}
no_more() { (($1 <= $2)) && echo "$1" || { echo "$1, and $2 before"; return 1; }; }
costs() {
    local cost
    cost=$(field "$1" cost)
    [[ $cost == "$2" ]] && echo "$cost" || { echo "$cost, not $2"; return 1; }
}
# The server calls a path by the address from which it comes.
goes_by() {
    local name=$1 address=$2 before after
    before=$(received "$address")
    "$marline" paths standby sim2 --control client.sock >/dev/null
    sleep 1
    after=$(received "$address")
    ((after > before)) && echo "$((after - before)) bytes" || { echo 'nothing came from there'; return 1; }
}

restart() {
    stage='the server restarts'
    ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    counter sent {}
    counter marked {}
    chain forward {
        type filter hook forward priority 0
        meta l4proto udp counter name sent
        meta l4proto udp ip ecn != not-ect counter name marked
    }
}
RULES
    session --socks off --path wwan0
    becomes "$EPOCHREALTIME" 5 wwan0 active >/dev/null
    # The session reads no marks, so a router must not take it for one that does.
    try 'packets are not marked' test "$(counted sent)" -gt 0 -a "$(counted marked)" == 0
    ip netns exec "$anchor" nft delete table inet lab
    end "$server_pid" TERM
    sleep 1
    try 'nobody speaks of overload' lines client.err overload 0
    try 'but of what is' lines client.err 'session 0 is over: .*the server stops' 1
    local before=$EPOCHREALTIME
    serve
    try 'then it is back' becomes "$before" 2 wwan0 active
    over
}

descriptors() {
    stage='no descriptors left'
    plug_in wwan0 1
    plug_in wwan1 2
    serve
    begin "$client" client sh -c 'ulimit -n 256 && exec "$@"' sh "$marline" client --identity client \
        --control client.sock --server "$string" --socks 127.0.0.1:1080 --path wwan0 --path wwan1
    client_pid=${running[-1]}
    becomes "$EPOCHREALTIME" 5 wwan0 active >/dev/null
    begin "$client" hold python3 -u -c "
import socket, time
held = [socket.create_connection(('127.0.0.1', 1080)) for _ in range(400)]
print('ready', flush=True)
end = time.time() + 60
while time.time() < end:
    # What is closed is opened again, as applications do.
    for n, one in enumerate(held):
        try:
            one.setblocking(False)
            if one.recv(1) == b'': raise OSError
        except BlockingIOError: pass
        except OSError:
            one.close(); held[n] = socket.create_connection(('127.0.0.1', 1080))
    time.sleep(0.2)"
    hold_pid=${running[-1]}
    await hold.out ready
    sleep 1
    try 'descriptors in use' echo "$(descriptors_of "$client_pid") of 256"
    try 'status answers' answers_soon
    unplug wwan0
    sleep 1
    plug_in wwan0 1
    try 'a path is dialled again' becomes "$EPOCHREALTIME" 1.5 wwan0 active
    end "$hold_pid" KILL
    over
}
answers_soon() { local began=$EPOCHREALTIME; timeout 5 "$marline" status --control client.sock >/dev/null && took "$began" 1; }

# UDP of the second path is dropped from the start, and later no more.
blocked() {
    stage='UDP is dropped, TCP is not'
    ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    chain forward { type filter hook forward priority 0; iifname "a2" meta l4proto udp drop; }
}
RULES
    session --socks off --path wwan0 --path wwan1
    try 'by TCP' carried_by 10 wwan1 tcp
    ip netns exec "$anchor" nft delete table inet lab
    try 'and by QUIC once it passes' carried_by 40 wwan1 quic
    try 'the other path did not notice' becomes "$EPOCHREALTIME" 1 wwan0 active
    over
    stage='a network that comes late'
    ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    chain forward { type filter hook forward priority 0; iifname "a1" drop; iifname "a2" drop; }
}
RULES
    session --socks off --path wwan0 --path wwan1
    sleep 7
    ip netns exec "$anchor" nft delete table inet lab
    local name
    for name in wwan0 wwan1; do
        becomes "$EPOCHREALTIME" 5 "$name" active >/dev/null || true
        try "never TCP: $name" carried_by 1 "$name" quic
    done
    over
}
# UDP passes until a flow has had 30 kB, or until it is cut; TCP always does. A download goes on
# over the other path.
cut() {
    local case
    for case in 'each flow of UDP' 'UDP later'; do
        stage="$case is cut off"
        [[ $case == UDP* ]] || ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    set seen { type inet_service; size 65535; flags dynamic; }
    chain forward { type filter hook forward priority 0; iifname "a2" meta l4proto udp update @seen { udp sport quota over 30 kbytes } drop; }
}
RULES
        session --socks 127.0.0.1:1080 --path wwan0 --path wwan1
        becomes "$EPOCHREALTIME" 5 wwan1 active >/dev/null
        head -c 400000000 /dev/zero >"$folder/body"
        begin "$server" web python3 -u -m http.server --bind 10.201.0.2 --directory "$folder" 8000
        local web=${running[-1]} load
        await web.out Serving
        # Up, so that the client's packets are many.
        begin "$client" load curl -s --limit-rate 1M --proxy socks5h://127.0.0.1:1080 -o /dev/null http://10.201.0.2:8000/body
        load=${running[-1]}
        [[ $case != UDP* ]] || {
            sleep 3
            ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    chain forward { type filter hook forward priority 0; iifname "a2" meta l4proto udp drop; }
}
RULES
        }
        local began=$EPOCHREALTIME
        try 'by TCP' carried_by 10 wwan1 tcp
        try 'after' took "$began" 8
        sleep 10
        try 'steady' lines client.err 'QUIC gets through (again|no more)' 1
        try 'it is active' becomes "$EPOCHREALTIME" 1 wwan1 active
        try 'the other path did not notice' lines client.err 'wwan0.*(suspect|dead)' 0
        try 'the download goes on' kill -0 "$load"
        end "$load" TERM
        end "$web" KILL
        ip netns exec "$anchor" nft delete table inet lab
        over
    done
}
# Waits up to $1 seconds until a path has this carrier.
carried_by() { for _ in $(seq $((5 * $1))); do [[ $(field "$2" carrier) == "$3" ]] && { echo "$3"; return; }; sleep 0.2; done; echo "$(field "$2" carrier), not $3"; return 1; }

# UDP has 2 Mb/s, what is sent beyond that is dropped without a queue; TCP has the link's 20 Mb/s.
policed() {
    local way trip
    for trip in ${TRIPS:-0 40 100}; do
        far_away "$trip"
        for way in down up; do policed_at "$trip" "$way"; done
        near_again
    done
}
# The server's way takes this long there and back (ms): it is a device of `marline link`.
far_away() {
    (($1 > 0)) || return 0
    begin "$anchor" far-away "$marline" link --near "far-a@$anchor=10.201.9.1/30" --far "far-s@$server=10.201.9.2/30" \
        --delay "$(($1 / 2))ms"
    far_away_pid=${running[-1]}
    await far-away.err ' down '
    ip -n "$anchor" route add 10.201.0.2/32 via 10.201.9.2
    ip -n "$server" route replace default via 10.201.9.1
    arrives=far-s
}
near_again() {
    [[ $arrives != s0 ]] || return 0
    ip -n "$server" route replace default via 10.201.0.1
    end "$far_away_pid" TERM
    arrives=s0
}
arrives=s0
policed_at() {
    local trip=$1 way=$2
    stage="UDP is policed, $way, $trip ms"
    session --socks 127.0.0.1:1080 --path wwan0
    becomes "$EPOCHREALTIME" 5 wwan0 active >/dev/null
    shaped
    ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    chain forward {
        type filter hook forward priority 0
        iifname "a1" meta l4proto udp limit rate over 250 kbytes/second burst 30 kbytes drop
        oifname "a1" meta l4proto udp limit rate over 250 kbytes/second burst 30 kbytes drop
    }
}
RULES
    load "$way"
    try 'at first: Mb/s' mbps "$way" 4 0 4
    local began=$EPOCHREALTIME
    try 'by TCP' carried_by 20 wwan0 tcp
    try 'after' took "$began" 11
    try 'then: Mb/s' mbps "$way" 5 15 21
    sleep 20
    try 'and stays there' carried_by 1 wwan0 tcp
    try 'it goes on' kill -0 "$load_pid"
    try 'it says so once' lines client.err 'the network polices QUIC' 1
    end "$load_pid" TERM
    end "$far_pid" KILL
    ip netns exec "$anchor" nft delete table inet lab
    over
}
# Everything loses a part of its packets, TCP and UDP alike.
lossy() {
    local percent
    local -x MARLINE_LOG=info,marline::endpoint::client=debug
    for percent in 10 30; do
        stage="$percent % are lost"
        session --socks 127.0.0.1:1080 --path wwan0
        becomes "$EPOCHREALTIME" 5 wwan0 active >/dev/null
        shaped
        ip netns exec "$anchor" nft "
            table inet lab {
                chain forward {
                    type filter hook forward priority 0
                    iifname { a1 } numgen random mod 100 < $percent drop
                    oifname { a1 } numgen random mod 100 < $percent drop
                }
            }"
        load down
        sleep 40
        try 'over QUIC still' carried_by 1 wwan0 quic
        try 'nobody speaks of TCP' lines client.err 'using TLS over TCP' 0
        try 'TCP was tried' at_most "$(grep -c 'trying TCP' client.err || true)" 1
        try 'the download goes on: Mb/s' mbps down 5 1 21
        end "$load_pid" TERM
        end "$far_pid" KILL
        ip netns exec "$anchor" nft delete table inet lab
        over
    done
}
at_most() { echo "$1 (at most $2)"; (($1 <= $2)); }
# A link of 20 Mb/s both ways.
shaped() {
    ip netns exec "$client" tc qdisc add dev wwan0 root tbf rate 20mbit burst 16kb latency 100ms
    ip netns exec "$anchor" tc qdisc add dev a1 root tbf rate 20mbit burst 16kb latency 100ms
}
# Down, a file that is fetched through the proxy, up, zeros that are sent through it, for as long as it takes.
load() {
    local far='python3 -u -m http.server --bind 10.201.0.2 --directory . 8000'
    local near='curl -s --proxy socks5h://127.0.0.1:1080 -o /dev/null http://10.201.0.2:8000/body'
    head -c 400000000 /dev/zero >"$folder/body"
    if [[ $1 == up ]]; then
        far="python3 -u -c \"
import socket
listener = socket.create_server(('10.201.0.2', 8000))
print('Serving', flush=True)
one = listener.accept()[0]
while one.recv(1 << 20): pass\""
        near="python3 -c \"
import socket
one = socket.create_connection(('127.0.0.1', 1080))
one.sendall(bytes([5, 1, 0])); one.recv(2)
one.sendall(bytes([5, 1, 0, 1]) + socket.inet_aton('10.201.0.2') + (8000).to_bytes(2, 'big')); one.recv(10)
while True: one.sendall(bytes(1 << 16))\""
    fi
    begin "$server" far sh -c "exec $far"
    far_pid=${running[-1]}
    await far.out Serving
    begin "$client" load sh -c "exec $near"
    load_pid=${running[-1]}
}
# The rate of what comes down or up ($1) over $2 s, from $3 to $4: what arrives, not what is sent.
mbps() {
    local before now
    before=$(brought "$1")
    sleep "$2"
    now=$(brought "$1")
    awk -v b="$((now - before))" -v s="$2" -v low="$3" -v high="$4" \
        'BEGIN { r = b * 8e-6 / s; printf "%.1f (%s to %s)\n", r, low, high; exit r < low || r > high }'
}
brought() {
    case $1 in
    down) ip netns exec "$client" cat /sys/class/net/wwan0/statistics/rx_bytes ;;
    up) ip netns exec "$server" cat "/sys/class/net/$arrives/statistics/rx_bytes" ;;
    esac
}

# Dark links, of both protocols: whatever was tried meanwhile, a path comes back over QUIC.
outages() {
    local links seconds
    for links in '"a2"' '"a1", "a2"'; do
        for seconds in 5 ${brief:-20 70}; do
            [[ $seconds != yes ]] || continue
            stage="dark for $seconds s: $links"
            session --socks off --path wwan0 --path wwan1
            becomes "$EPOCHREALTIME" 5 wwan1 active >/dev/null
            ip netns exec "$anchor" nft "
                table inet lab {
                    chain forward { type filter hook forward priority 0; iifname { $links } drop; oifname { $links } drop; }
                }"
            sleep "$seconds"
            ip netns exec "$anchor" nft delete table inet lab
            try 'back' becomes "$EPOCHREALTIME" 5 wwan1 active
            sleep 4
            try 'over QUIC' carried_by 1 wwan1 quic
            try 'and never over TCP' lines client.err 'using TLS over TCP' 0
            over
        done
    done
}

# What is sent in batches is lost whole, as by some drivers: the link takes no frame that is still to be cut.
batches() {
    stage='batches are lost'
    ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    chain forward { type filter hook forward priority 0; meta l4proto udp meta length > 1500 counter drop; }
}
RULES
    session --socks 127.0.0.1:1080 --path wwan0
    becomes "$EPOCHREALTIME" 5 wwan0 active >/dev/null
    head -c 20000000 /dev/zero >"$folder/body"
    begin "$server" web python3 -u -m http.server --bind 10.201.0.2 --directory "$folder" 8000
    local web=${running[-1]} began=$EPOCHREALTIME
    await web.out Serving
    try '20 MB come' within curl -sf -m 25 --proxy socks5h://127.0.0.1:1080 -o /dev/null http://10.201.0.2:8000/body
    try 'after' took "$began" 15
    try 'one by one from the server' lines server.err 'one by one' 1
    try 'over QUIC still' carried_by 1 wwan0 quic
    end "$web" KILL
    ip netns exec "$anchor" nft delete table inet lab
    over
}

# A link with IPv6 alone, whose translator is the server itself here, at the address in which its
# IPv4 one is embedded. The resolver shows the prefix, or a router announces another one.
nat64() {
    stage='IPv6 alone, a server with IPv4'
    plug_in wwan0 1
    ip -n "$client" address del 10.201.1.2/24 dev wwan0
    ip -n "$client" -6 address add fd01::2/64 dev wwan0 nodad
    ip -n "$anchor" -6 address add fd01::1/64 dev a1 nodad
    ip -n "$anchor" -6 address add fd00::1/64 dev a0 nodad
    ip -n "$server" -6 address add fd00::2/64 dev s0 nodad
    ip -n "$server" -6 address add 64:ff9b::10.201.0.2/128 dev lo nodad
    ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
    ip -n "$anchor" -6 route add 64:ff9b::/96 via fd00::2
    ip -n "$server" -6 route add default via fd00::1
    ip -n "$client" -6 route add default via fd01::1 dev wwan0
    mkdir -p "/etc/netns/$client"
    echo '64:ff9b::192.0.0.170 ipv4only.arpa' >"/etc/netns/$client/hosts"
    begin "$server" server "$marline" server --identity server --listen '[::]:4433' --advertise 10.201.0.2 \
        --allow-client "$key" --control server.sock
    server_pid=${running[-1]}
    await server.out marline://
    local began=$EPOCHREALTIME router
    dial --server "$(head -n1 server.out)" --socks off --path wwan0
    try 'as the resolver shows it' becomes "$began" 5 wwan0 active
    end "$client_pid" TERM
    ip -n "$server" -6 address del 64:ff9b::10.201.0.2/128 dev lo
    ip -n "$server" -6 address add 2001:db8:64::10.201.0.2/128 dev lo nodad
    ip -n "$anchor" -6 route add 2001:db8:64::/96 via fd00::2
    : >"/etc/netns/$client/hosts"
    dial --server "$(head -n1 server.out)" --socks off --path wwan0
    sleep 2
    try 'without either: not' lines client.err 'session 0 with .* is open' 0
    began=$EPOCHREALTIME
    begin "$anchor" router python3 "$here/router.py" a1 2001:db8:64::
    router=${running[-1]}
    try 'as a router announces it' becomes "$began" 5 wwan0 active
    end "$router" KILL
    over
    rm -r "/etc/netns/$client"
}

# 5 Mb/s, and then as much as passes, over a cheap and a dear path of 20 Mb/s each.
dear() {
    stage='a modem that is paid for'
    begin "$server" source python3 -u -c "
import socket, time
listener = socket.create_server(('10.201.0.2', 8000))
print('ready', flush=True)
while True:
    one = listener.accept()[0]
    kind = one.recv(1)
    try:
        for n in range(200 if kind == b'p' else 1600):
            one.sendall(bytes(62500))
            if kind == b'p': time.sleep(0.1)
    except OSError: pass
    one.close()"
    local source_pid=${running[-1]}
    await source.out ready
    session --socks 127.0.0.1:1080 --path wwan0 --path wwan1,cost=2
    local number name
    for number in 1 2; do
        ip netns exec "$client" tc qdisc add dev "wwan$((number - 1))" root tbf rate 20mbit burst 16kb latency 100ms
        ip netns exec "$anchor" tc qdisc add dev "a$number" root tbf rate 20mbit burst 16kb latency 100ms
    done
    for name in wwan0 wwan1; do becomes "$EPOCHREALTIME" 5 "$name" active >/dev/null; done
    try '5 Mb/s: over the dear one' share_of p 0 2
    try '100 MB: over the dear one' share_of b 20 60
    end "$source_pid" KILL
    over
}
# The share (%) of what is fetched that comes over wwan1, from $2 to $3.
share_of() {
    local before after
    before=($(field wwan0 received_bytes) $(field wwan1 received_bytes))
    within python3 -c "
import socket
one = socket.create_connection(('127.0.0.1', 1080))
one.sendall(b'\\x05\\x01\\x00'); one.recv(2)
one.sendall(b'\\x05\\x01\\x00\\x01' + socket.inet_aton('10.201.0.2') + (8000).to_bytes(2, 'big')); one.recv(10)
one.sendall(b'$1')
while one.recv(1 << 20): pass"
    after=($(field wwan0 received_bytes) $(field wwan1 received_bytes))
    awk -v c="$((after[0] - before[0]))" -v d="$((after[1] - before[1]))" -v low="$2" -v high="$3" \
        'BEGIN { s = 100 * d / (c + d); printf "%.1f %% of %.0f MB (%s to %s)\n", s, (c + d) / 1e6, low, high; exit s < low || s > high }'
}

# Both modems have a default route, and the first one's comes first: a source address alone would have both paths leave
# by that.
sources() {
    stage='paths by source address'
    session --socks off --path 10.201.1.2 --path 10.201.2.2
    local number
    for number in 1 2; do
        becomes "$EPOCHREALTIME" 5 "10.201.$number.2" active >/dev/null
    done
    local before=("$(came_in 1)" "$(came_in 2)")
    sleep 11
    for number in 1 2; do
        try "path $number leaves by its own modem" grows "$number" "${before[number - 1]}"
    done
    unplug wwan0
    try 'without the first, the second stays' still active 10.201.2.2
    plug_in wwan0 1
    try 'the first is back' becomes "$EPOCHREALTIME" 2 10.201.1.2 active
    over
}
# Packets that the anchor has from a modem.
came_in() { ip netns exec "$anchor" cat "/sys/class/net/a$1/statistics/rx_packets"; }
grows() { local now; now=$(came_in "$1"); (($now > $2 + 1)) && echo "$((now - $2)) packets" || { echo "$((now - $2)) packets"; return 1; }; }
still() { sleep 2; [[ $(state "$2") == "$1" ]] && echo "$1" || { state "$2"; return 1; }; }

# What a path costs on which nothing is sent: bytes of IP over three minutes, as a day's.
idle() {
    stage='nothing is sent'
    session --socks off --path wwan0 --path wwan1,standby
    becomes "$EPOCHREALTIME" 5 wwan0 active >/dev/null
    becomes "$EPOCHREALTIME" 5 wwan1 standby >/dev/null
    ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    counter wwan0 {}
    counter wwan1 {}
    chain forward {
        type filter hook forward priority 0
        meta l4proto { tcp, udp } iifname "a1" counter name wwan0
        meta l4proto { tcp, udp } oifname "a1" counter name wwan0
        meta l4proto { tcp, udp } iifname "a2" counter name wwan1
        meta l4proto { tcp, udp } oifname "a2" counter name wwan1
    }
}
RULES
    # The search for the largest packet has ended.
    sleep 20
    local before=("$(counted wwan0)" "$(counted wwan1)")
    sleep 180
    try 'active: MB a day' a_day "$(($(counted wwan0) - before[0]))" 2
    try 'on standby: MB a day' a_day "$(($(counted wwan1) - before[1]))" 1
    ip netns exec "$anchor" nft delete table inet lab
    over
}
# The same behind an address translator that forgets a path after 30 and 60 s, and gives it another port then.
asleep() {
    local remembers most
    for remembers in 30 60; do
        stage="on standby behind a translator that remembers for $remembers s"
        ((remembers < 60)) && most=1 || most=0.5
        ip netns exec "$anchor" nft -f - <<'RULES'
table inet lab {
    counter wwan1 {}
    chain forward {
        type filter hook forward priority 0
        meta l4proto { tcp, udp } iifname "a2" counter name wwan1
        meta l4proto { tcp, udp } oifname "a2" counter name wwan1
    }
    chain input { type filter hook input priority 0; iifname "a0" meta l4proto udp drop; }
    chain postrouting { type nat hook postrouting priority 100; oifname "a0" masquerade fully-random; }
}
RULES
        ip netns exec "$anchor" sh -c "
            echo $remembers >/proc/sys/net/netfilter/nf_conntrack_udp_timeout
            echo $remembers >/proc/sys/net/netfilter/nf_conntrack_udp_timeout_stream"
        session --socks off --path wwan0 --path wwan1,standby
        becomes "$EPOCHREALTIME" 5 wwan1 standby >/dev/null
        # What the translator remembers is learnt.
        sleep 160
        local before
        before=$(counted wwan1)
        sleep 180
        try 'MB a day' a_day "$(($(counted wwan1) - before))" "$most"
        try 'it is on standby' becomes "$EPOCHREALTIME" 1 wwan1 standby
        try 'nobody speaks of it' lines client.err 'wwan1.*(suspect|dead|lost|again)' 0
        try 'nor the server' lines server.err '(suspect|dead|lost|again)' 0
        ip netns exec "$anchor" nft delete table inet lab
        over
    done
}
# Bytes of UDP and TCP in IP, both ways; what neighbours ask each other is not ours.
counted() { ip netns exec "$anchor" nft list counter inet lab "$1" | awk '/bytes/ { print $4 }'; }
a_day() { awk -v b="$1" -v most="$2" 'BEGIN { d = b * 480e-6; printf "%.2f (at most %s)\n", d, most; exit d > most }'; }

# A modem is plugged in again a thousand times, or as often as five minutes let it, beside a
# download. What both ends hold after the hundredth time is what they hold after the last.
often() {
    local times=1000 most=300
    session --socks 127.0.0.1:1080 --path wwan0 --path wwan1
    becomes "$EPOCHREALTIME" 5 wwan0 active >/dev/null
    truncate -s 400M "$folder/body"
    begin "$server" web python3 -u -m http.server --bind 10.201.0.2 --directory "$folder" 8000
    local web=${running[-1]} round began=$SECONDS held=() now=()
    await web.out Serving
    begin "$client" load curl -s --limit-rate 500k --proxy socks5h://127.0.0.1:1080 -o /dev/null http://10.201.0.2:8000/body
    local load=${running[-1]}
    for ((round = 1; round <= times && SECONDS - began < most; round++)); do
        unplug wwan0
        plug_in wwan0 1
        # Some are up before the next time, some are still dialled.
        case $((round % 4)) in
        0) becomes "$EPOCHREALTIME" 2 wwan0 active >/dev/null || true ;;
        1) sleep 0.1 ;;
        esac
        if ((round == 100)); then held=($(holdings)); fi
    done
    stage="plugged in $((round - 1)) times"
    try 'it is active' becomes "$EPOCHREALTIME" 2 wwan0 active
    try 'the download goes on' kill -0 "$load"
    now=($(holdings))
    try 'client: descriptors' no_more "${now[0]}" "$((held[0] + 2))"
    try 'client: kB of memory' no_more "${now[1]}" "$((held[1] * 11 / 10 + 2048))"
    try 'server: descriptors' no_more "${now[2]}" "$((held[2] + 2))"
    try 'server: kB of memory' no_more "${now[3]}" "$((held[3] * 11 / 10 + 2048))"
    end "$load" TERM
    end "$web" KILL
    over
}
# Descriptors and memory (kB) of the client and of the server, once what lingers has gone: the least
# of 15 s.
holdings() {
    local pid
    for pid in "$client_pid" "$server_pid"; do
        for _ in $(seq 15); do
            echo "$(descriptors_of "$pid") $(memory_of "$pid")"
            sleep 1
        done | sort -n | head -n1
    done
}

for name in "${stages[@]}"; do
    [[ $(type -t "$name") == function ]] || { usage >&2; exit 2; }
    "$name"
done
exit "$failed"
