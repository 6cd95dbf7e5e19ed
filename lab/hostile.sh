#!/usr/bin/env bash
# Attacks on a real server and real clients: nothing that one flow, one client, one stranger or one server does stops the
# others. A stage a promise of docs/SECURITY-MODEL.md, each with what was measured and its limit. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stages=(stalled silent unlisted exhausted memory own names lines lease reload twice doors turns waves servers)
brief=
hostile=${HOSTILE:-$(dirname "$marline")/marline-hostile}

usage() {
    cat <<TEXT
Usage: lab/hostile.sh [--brief] [STAGE...]

  --brief  fewer and shorter attacks, without the last three stages; two or three minutes

Stages:
  stalled      flows that nobody reads, through one client's proxy
  silent       strangers' TCP connections without a word
  unlisted     strangers' handshakes with a key that is not listed
  exhausted    a server without file descriptors
  memory       a client that reads nothing, over all its sessions
  own          the server's own addresses
  names        names that nobody answers for
  lines        log lines that a client can cause
  lease        a server that gives more of the network than it was asked for
  reload       a key that is taken out of the configuration
  twice        one key on two machines
  doors        the proxy, the metrics and the control socket; amplification
  turns        one client's 500 busy flows beside another client
  waves        frames written by hand
  servers      servers that a client should not have trusted

Limits in time are twice what is promised, for a busy machine. Ends with code 1 when something does not hold.
MARLINE is the program [default: $marline], HOSTILE the attacker [default: marline-hostile beside it].
Needs root, ip, curl, ping, nft, python3 and /dev/net/tun.
TEXT
}

chosen=()
while (($#)); do
    case $1 in
    --brief) brief=yes ;;
    -h | --help) usage && exit 0 ;;
    *)
        [[ " ${stages[*]} " == *" $1 "* ]] || { usage >&2 && exit 2; }
        chosen+=("$1")
        ;;
    esac
    shift
done
# Of the brief run the last three are left out, unless they are asked for.
((${#chosen[@]})) || chosen=("${stages[@]:0:${#stages[@]}${brief:+-3}}")

needs curl ping nft python3
[[ -x $hostile ]] || { echo "error: no attacker at $hostile: cargo build --release -p marline-hostile, or set HOSTILE" >&2; exit 1; }
hostile=$(realpath "$hostile")
build
routed
evil=$("$marline" identity new evil 2>/dev/null)
# Attackers have more descriptors than a server that was started with the usual limit.
ulimit -n "$(ulimit -Hn)"

# Flows stall soon when the kernel keeps little of what a target does not read.
for namespace in "$server" "$client"; do
    ip netns exec "$namespace" sh -c 'echo 4096 16384 65536 >/proc/sys/net/ipv4/tcp_wmem'
done
# Further addresses for strangers.
strangers=
for number in 1 2 3 4 5 6 7 8; do
    ip -n "$client" address add "10.201.1.10$number/32" dev c1
    strangers+=,10.201.1.10$number
done
strangers=${strangers#,}
# One that looks public, on the server's host; only the server's own policy hides it.
public=11.22.33.44
ip -n "$server" address add $public/32 dev s0

clean_up_too() {
    umount "$folder/full" 2>/dev/null || true
    clean_up
}
trap clean_up_too EXIT

# Programs at their places.

# A server at a port, its output in a file of that name.
serve_at() {
    local port=$1 log=$2
    shift 2
    begin "$server" "$log" bash -c 'ulimit -Sn "$1"; shift; exec "$@"' - 1024 "$marline" server --identity server \
        --listen "10.201.0.2:$port" --allow-client "$key" --allow-client "$evil" --control off "$@"
    await "$log.out" marline://
}
serve() {
    serve_at 4433 server "$@"
    server_pid=${running[-1]}
    string=$(head -n1 server.out)
}
open_server() { serve --allow-target 10.201.0.1 "$@"; }
connect() {
    begin "$client" client "$marline" client --identity client --server "$string" --control client.sock \
        --socks 127.0.0.1:1080 "$@"
    client_pid=${running[-1]}
    shows ' active'
}
targets() {
    begin "$anchor" targets "$hostile" targets --listen 0.0.0.0:7000 --seconds 3600
    await targets.out ready
}
deaf=10.201.0.1:7000 sips=10.201.0.1:7001 flood=10.201.0.1:7002 echo=10.201.0.1:7003 page=10.201.0.1:7004
# A link of 20 Mb/s and 20 ms in front of the server, or of one at another port, at the anchor's address of that way; at
# port 5000, and as many further on.
narrow() {
    local port=${2:-4433}
    begin "$anchor" "link-$1-$port" "$marline" link --listen "10.201.$1.1:$((port + 567))" --to "10.201.0.2:$port" \
        --rate 20mbit --delay 10ms --queue 200ms
    await "link-$1-$port.err" relaying
}
# Starts an attack in a namespace and waits until it stands; its seconds are at most those of the whole run.
attack() {
    local namespace=$1 attempt
    shift
    begin "$namespace" attack "$hostile" "$@"
    attack_pid=${running[-1]}
    for attempt in $(seq 1000); do
        ! grep -q ready: attack.out || return 0
        kill -0 "$attack_pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "error: the attack did not come about: $(tail -n1 attack.out attack.err)" >&2
    return 1
}
# By a client with a listed key of its own.
by_client() {
    local what=$1
    shift
    attack "$client" "$what" --identity evil --server "$string" "$@"
}
end() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# Waits until hardly anything passes the client's first way: less than 100 kB in 2 s, for two minutes at most.
quiet() {
    local before now attempt
    before=$(passed)
    for attempt in $(seq 60); do
        sleep 2
        now=$(passed)
        ((now - before >= 100000)) || return 0
        before=$now
    done
    say '  to begin with' 'FAILED: it has not come to rest in 120 s; is the machine too busy for a link of 20 Mb/s?'
}
passed() { ip netns exec "$client" awk '$1 == "c1:" { print $2 + $10 }' /proc/net/dev; }

# What is measured.

# Seconds that a page of 100 kB takes through the proxy, which is at most 10.
fetch() {
    within curl -sf -m 10 -o /dev/null -w '%{time_total}\n' --proxy socks5h://127.0.0.1:1080 "http://${1:-$page}/" || true
}
# The median of some; of one that did not come, itself.
fetches() {
    local number times
    times=$(for number in $(seq "$1"); do
        fetch
    done)
    sort -n <<<"$times" | sed -n "$((($1 + 1) / 2))p"
}
resident() { awk -v of="$2:" '$1 == of { printf "%.0f\n", $2 / 1024 }' "/proc/$1/status"; }
peak() { resident "$1" VmHWM; }
descriptors() { ls "/proc/$1/fd" 2>/dev/null | wc -l; }
# The most descriptors within some seconds.
most_descriptors() {
    local most=0 now end=$((SECONDS + $2))
    while ((SECONDS < end)); do
        now=$(descriptors "$1")
        ((now <= most)) || most=$now
        sleep 0.1
    done
    echo "$most"
}
# Seconds for which a process runs or waits for a processor, for each of some seconds: a busy machine hides no spinning.
busyness() {
    local before after
    before=$(demand "$1")
    sleep "$2"
    after=$(demand "$1")
    calculate "($after - $before) / 1e9 / $2"
}
demand() { cat "/proc/$1"/task/*/schedstat | awk '{ all += $1 + $2 } END { printf "%.0f\n", all }'; }
calculate() { awk "BEGIN { printf \"%.2f\\n\", $1 }"; }
# Figures above their limits have failed: what, the figure, its limit, their unit.
at_most() {
    if awk -v figure="$2" -v limit="$3" 'BEGIN { exit !(figure + 0 <= limit + 0) }'; then
        say "$1" "$2 $4 (limit $3)"
    else
        say "$1" "FAILED: $2 $4 (limit $3)"
    fi
}
alive() {
    if kill -0 "$server_pid" 2>/dev/null; then say 'the server lives' yes; else say 'the server lives' 'FAILED: no'; fi
}
# Seconds until a client with a listed key has a session, over a carrier and from an address; at most 10.
enters() {
    local began=$EPOCHREALTIME
    within "$hostile" idle --identity client --server "$string" --path "$2,carrier=$1" --target $page --count 0 --seconds 0 >enters.out || true
    if grep -q ready: enters.out; then calculate "$EPOCHREALTIME - $began"; else echo 99; fi
}
# The last line of a log about something.
logged() {
    local line
    line=$(grep -iE -- "$2" "$1.err" | tail -n1) && [[ $line ]] || { echo "no word of it"; return 1; }
    cut -d' ' -f2- <<<"$line" | cut -c1-80
}
answers() {
    local attempt
    for attempt in $(seq 10); do
        within ping -c 1 -W 1 "$1" | sed -n 's/.*time=//p' | grep . && return
    done
    echo 'no ping is answered for 10 s'
    return 1
}

# The stages.

# One way of stalling: what the program does, how many flows, the target, bytes of each, how much longer a request may take.
stall() {
    local what=$1 count=$2 target=$3 each=$4 limit=$5 alone
    open_server
    connect --path "c1,server=10.201.1.1:5000,carrier=quic"
    alone=$(fetches 3)
    attack "$client" "program-${what%% *}" --socks 127.0.0.1:1080 --count "$count" --target "$target" --each "$each" --seconds 600 || true
    quiet
    say "  ${what#* }" "$(sed -n "s/ready: //p" attack.out)"
    at_most "$count ${what#* }" "$(calculate "$(fetches 1) / $alone")" "$limit" 'times as long'
    end "$attack_pid"
    sleep 1
    at_most '  and when they are gone' "$(calculate "$(fetches 1) / $alone")" 3 'times as long'
    end "$client_pid"
    end "$server_pid"
}
stalled() {
    narrow 1
    local counts='5 64 1000' count each
    [[ ! $brief ]] || counts=5
    for count in $counts; do
        # Enough to fill every window by far, and no more.
        each=$((count > 100 ? 200000 : 20000000))
        stall 'upload uploads from the start' "$count" $deaf $each 3
        [[ $brief ]] || stall 'download downloads from the start' "$count" $flood 0 3
        ((count < 100)) || continue
        [[ $brief ]] || stall 'upload uploads read before' "$count" $sips $((each + 1000000)) 6
        stall 'download downloads read before' "$count" $flood 1000000 6
    done
}

silent() {
    open_server
    local count counts='256 2000'
    [[ ! $brief ]] || counts=256
    at_most 'nobody else: in by TCP' "$(enters tcp c1)" 4 s
    for count in $counts; do
        attack "$client" silent --server "$string" --from "$strangers" --count "$count" --seconds 600
        at_most "$count silent: in by QUIC" "$(enters quic c1)" 4 s
        # Those that the server has closed meanwhile are back by then.
        sleep 3
        at_most "$count silent: in by TCP" "$(enters tcp c1)" 4 s
        end "$attack_pid"
    done
    attack "$client" slow --server "$string" --from "$strangers" --count 256 --seconds 600
    at_most '256 slow: in by QUIC' "$(enters quic c1)" 4 s
    at_most '256 slow: in by TCP' "$(enters tcp c1)" 4 s
}

unlisted() {
    local carrier number before seconds=10
    [[ ! $brief ]] || seconds=4
    for carrier in tcp quic; do
        open_server
        connect --path c1
        before=$(resident "$server_pid" VmRSS)
        for number in 1 2 3 4 5 6 7 8; do
            begin "$client" "unlisted-$number" "$hostile" handshakes --server "$string" --rate 64 --seconds $seconds \
                --path "10.201.1.10$number,carrier=$carrier"
        done
        at_most "$carrier: descriptors" "$(most_descriptors "$server_pid" $((seconds - 1)))" 600 ''
        at_most "$carrier: another's request" "$(fetch)" 2 s
        wait "${running[@]: -8}" 2>/dev/null || true
        say "$carrier: handshakes" "$(cat unlisted-*.out | awk '/a second/ { all += $1 } END { print all }') a second"
        at_most "$carrier: memory more" "$(($(peak "$server_pid") - before))" 64 MB
        end "$client_pid"
        end "$server_pid"
    done
}

exhausted() {
    open_server --tcp on
    prlimit --pid "$server_pid" --nofile=64:64
    attack "$client" silent --server "$string" --from "$strangers" --count 300 --seconds 600
    local before
    before=$(wc -l <server.err)
    at_most 'without any: busy for' "$(busyness "$server_pid" 3)" 0.2 's a second'
    at_most 'lines in the log' "$(($(wc -l <server.err) - before))" 20 'in 3 s'
    end "$attack_pid"
    sleep 1
    at_most 'in when they are back' "$(enters tcp c1)" 4 s
    alive
}

memory() {
    local wave
    open_server
    connect --path c1
    by_client unread --sessions 12 --count 1000 --target $flood --path c2 --seconds 600
    begin "$client" idle "$hostile" idle --identity evil --server "$string" --sessions 4 --count 1000 --target $echo --path c2 --seconds 600
    sleep 10
    at_most 'unread and idle: memory' "$(peak "$server_pid")" 256 MB
    at_most "another's request" "$(fetch)" 2 s
    end "$attack_pid"
    end "${running[-1]}"
    alive
    end "$server_pid"
    end "$client_pid"
    local waves='claims crumbs opens'
    [[ ! $brief ]] || waves=claims
    for wave in $waves; do
        open_server
        connect --path c1
        by_client frames --wave $wave --sessions 16 --rate 2000 --target $flood --path c2 --seconds 8
        sleep 6
        at_most "$wave: another's request" "$(fetch)" 2 s
        at_most "$wave: memory" "$(peak "$server_pid")" 256 MB
        alive
        end "$attack_pid"
        end "$server_pid"
        end "$client_pid"
    done
}

# The page of the server's own host is reached through the proxy, and through the tunnel.
by_socks() { within curl -sf -m 5 -o /dev/null --proxy socks5h://127.0.0.1:1080 "http://$1/"; }
by_tunnel() { within curl -sf -m 5 -o /dev/null "http://$1/"; }
never() { if "$@"; then echo 'it was reached'; return 1; else echo 'not reached'; fi; }
own() {
    begin "$server" page "$hostile" targets --listen 0.0.0.0:7000 --seconds 3600
    await page.out ready
    local tunnel=(--tun=lab-s --tun-setup=no-nat --tun-state off --tun-pool 10.77.0.0/24)
    local device=(--path c1 --tun=lab-c --tun-setup --tun-route 11.22.33.0/24)
    serve "${tunnel[@]}"
    connect "${device[@]}"
    await client.err 'packets of up to'
    try 'its public address, SOCKS' never by_socks $public:7004
    try 'its public address, TUN' never by_tunnel $public:7004
    ip -n "$server" address add 11.22.33.55/32 dev s0
    sleep 2
    try 'a new one, SOCKS' never by_socks 11.22.33.55:7004
    try 'a new one, TUN' never by_tunnel 11.22.33.55:7004
    try 'its address in the tunnel' never by_tunnel 10.77.0.1:7004
    try 'which answers pings' answers 10.77.0.1
    end "$client_pid"
    end "$server_pid"
    serve "${tunnel[@]}" --allow-target 1.1.1.1:443
    connect "${device[@]}"
    await client.err 'packets of up to'
    try 'by a rule for another one' never by_tunnel 10.77.0.1:7004
    end "$client_pid"
    end "$server_pid"
    serve "${tunnel[@]}" --allow-target $public:7004 --allow-target 10.77.0.1:7004
    connect "${device[@]}"
    await client.err 'packets of up to'
    try 'by its rule, SOCKS' by_socks $public:7004
    try 'by its rule, TUN' by_tunnel $public:7004
    try 'by its rule, in the tunnel' by_tunnel 10.77.0.1:7004
}

names() {
    mkdir -p "/etc/netns/$server"
    echo 'nameserver 10.201.0.1' >"/etc/netns/$server/resolv.conf"
    ip -n "$anchor" address add 192.0.2.53/32 dev lo
    ip -n "$server" route add 192.0.2.53 via 10.201.0.1
    begin "$anchor" names python3 "$here/names.py" 10.201.0.1
    await names.out ready
    serve --allow-target 192.0.2.53
    connect --path c1
    at_most 'a name' "$(fetch name.example:7004)" 1 s
    by_client names --count 600 --target silent.example:80 --path c2 --seconds 600
    sleep 1
    at_most 'a name beside 600 silent ones' "$(fetch "other.example:7004")" 1 s
    at_most '  and the first one again' "$(fetch "name.example:7004")" 1 s
}

# Log lines of the server a second, while a client does something: what, and the attack.
loud() {
    local what=$1 before
    shift
    before=$(wc -l <server.err)
    by_client "$@" --path c2 --seconds 4
    wait "$attack_pid" 2>/dev/null || true
    at_most "$what" $((($(wc -l <server.err) - before) / 4)) 20 'lines a second'
    say '  attempts' "$(tail -n1 attack.out)"
}
lines() {
    mkdir -p full
    mount -t tmpfs -o size=16k tmpfs full
    cat /dev/zero >full/zeros 2>/dev/null || true
    open_server --tun=lab-s --tun-setup=no-nat --tun-state full/leases.toml --tun-pool 10.77.0.0/24
    loud 'leases on a full disk' leases --rate 2000
    loud 'refused targets' refused --rate 2000 --target 10.9.9.9:1
    loud 'sessions' sessions --rate 100
    alive
}

lease() {
    begin "$server" server "$hostile" server-lease --identity server --listen 10.201.0.2:4433 --allow "$key" --seconds 600
    await server.out marline://
    string=$(head -n1 server.out)
    ip netns exec "$client" nft -f - <<'TEXT'
table ip lab {
    chain seen {
        type filter hook prerouting priority -300;
        iifname "lab-c" ip saddr { 10.201.1.1, 192.168.1.1, 127.0.0.1, 8.0.0.2 } counter
    }
}
TEXT
    connect --path c1 --tun=lab-c --tun-setup --tun-route 11.0.0.0/8
    sleep 5
    try 'no route that was not given' none "$(ip -n "$client" route show dev lab-c | grep -v '^11\.' | grep / | paste -sd';')"
    at_most 'packets from elsewhere' "$(ip netns exec "$client" nft list table ip lab | sed -n 's/.*packets \([0-9]*\).*/\1/p')" 0 packets
    ip netns exec "$client" nft delete table ip lab
}
none() { [[ -z $1 ]] || { echo "there is $1"; return 1; }; }

# The session ended, or the log says that it takes a restart.
gone_or_told() {
    local attempt
    for attempt in $(seq 40); do
        if ! grep -q active < <("$marline" status --control client.sock 2>/dev/null); then echo 'its session is over' && return; fi
        if logged server 'restart|read again' >told; then cat told && return; fi
        sleep 0.1
    done
    echo 'it stays'
    return 1
}
says_more() { (($(wc -l <"$1.err") > $2)) && tail -n1 "$1.err" | cut -d' ' -f2- | cut -c1-80 || { echo 'nothing'; return 1; }; }
reload() {
    local text="identity = \"server\"
listen = [\"10.201.0.2:4433\"]
control = \"off\"
allow-target = [\"10.201.0.1\"]"
    printf '%s\nallow-client = ["%s", "%s"]\n' "$text" "$evil" "$key" >server.toml
    begin "$server" server "$marline" server --config server.toml
    server_pid=${running[-1]}
    await server.out marline://
    string=$(head -n1 server.out)
    connect --path c1
    printf '%s\nallow-client = ["%s"]\n' "$text" "$evil" >server.toml
    kill -HUP "$server_pid"
    try 'a key out of the file' gone_or_told
    local before
    before=$(wc -l <client.err)
    kill -HUP "$client_pid"
    sleep 1
    try 'a client without a file says so' says_more client "$before"
}

twice() {
    open_server --tun=lab-s --tun-setup=no-nat --tun-state off --tun-pool 10.77.0.0/24
    connect --path c1 --tun=lab-c --tun-setup
    await client.err 'packets of up to'
    try 'the first one' answers 10.77.0.1
    begin "$anchor" second "$marline" client --identity client --server "$string" --control off --socks off \
        --tun=lab-b --tun-setup
    await second.err 'packets of up to'
    sleep 2
    end "${running[-1]}"
    try 'the first one, alone again' answers 10.77.0.1
    try "the server's log says so" logged server "$two"
    try "a client's log says so" either_logged "$two"
}
# How a log may say it.
two='twice|elsewhere|same key|another (machine|host|place|session|client)'
either_logged() { logged client "$1" 2>/dev/null || logged second "$1"; }

# A program that must refuse to start; it is given 5 s.
refuses() {
    local status=0
    ip netns exec "$client" timeout 5 "$@" >refused.out 2>refused.err || status=$?
    [[ $status != 124 && $status != 0 ]] || { echo "it did not refuse ($status)"; return 1; }
    head -n1 refused.err | cut -c1-70
}
doors() {
    open_server
    local open=(client --identity client --server "$string" --control off --path c1)
    try 'a proxy for everybody' refuses "$marline" "${open[@]}" --socks 0.0.0.0:1081
    echo secret >password
    chmod 644 password
    try 'a password that all can read' refuses "$marline" "${open[@]}" --socks-user me --socks-password-file "$folder/password"
    end "$server_pid"

    open_server --metrics 127.0.0.1:9900
    attack "$server" silent --target 127.0.0.1:9900 --count 16 --seconds 600
    try 'metrics beside 16 idle' ip netns exec "$server" curl -sf -m 10 -o /dev/null -w '%{time_total} s' http://127.0.0.1:9900/metrics
    end "$attack_pid"
    try 'metrics under a strange name' never ip netns exec "$server" curl -sf -m 10 -o /dev/null -H 'Host: evil.example' http://127.0.0.1:9900/metrics

    mkdir -p others/marline-0
    chown 65534 others/marline-0
    chmod 777 others/marline-0
    begin "$client" client env -u XDG_RUNTIME_DIR TMPDIR="$folder/others" "$marline" client --identity client \
        --server "$string" --socks 127.0.0.1:1080 --path c1
    sleep 3
    try "a control folder of somebody else" by_socks $page

    within "$hostile" initial --server "$string" --seconds 8 >initial.out || true
    at_most amplification "$(sed -n 's/amplification \([0-9.]*\).*/\1/p' initial.out)" 3.2 times
}

# The 99th percentile of questions over a link of their own (ms), the least of three times: a busy machine only adds.
asked() {
    local round
    for round in 1 2 3; do
        within "$hostile" probe --identity client --server "$string" --path c2,server=10.201.2.1:5000,carrier=quic \
            --target $echo --seconds 3 >probe.out 2>&1 || true
        sed -n 's/.*p99 \([0-9.]*\) ms.*/\1/p' probe.out
    done | sort -n | head -n1 | grep . || { tail -n1 probe.out >&2 && echo 9999; }
}
# The same beside 500 busy flows of another client, at a server, through the link at a port, as `beside`.
asked_beside() {
    attack "$client" busy --identity evil --server "$1" --count 500 --target $flood \
        --path "c1,server=10.201.1.1:$2,carrier=quic" --seconds 600
    sleep 2
    beside=$(asked)
    end "$attack_pid"
    sleep 2
}
turns() {
    narrow 1
    narrow 2
    narrow 1 4434
    open_server
    serve_at 4434 other --allow-target 10.201.0.1
    local alone apart together beside
    alone=$(asked)
    # What the same work costs where no thread is shared: two servers share the machine only.
    asked_beside "$(head -n1 other.out)" 5001
    apart=$beside
    asked_beside "$string" 5000
    together=$beside
    say 'alone' "p99 $alone ms"
    say 'beside 500 busy flows' "$(calculate "$together - $alone") ms more"
    say '  at another server' "$(calculate "$apart - $alone") ms more"
    at_most '  what sharing a server adds' "$(calculate "$together - $apart")" 2 ms
}

waves() {
    local wave seconds=4
    open_server
    connect --path c1
    for wave in $("$hostile" --help | sed -n '/^Waves:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        by_client frames --wave "$wave" --sessions 4 --rate 4000 --target $deaf --path c2 --seconds $seconds
        sleep 2
        at_most "$wave: another's request" "$(fetch)" 2 s
        wait "$attack_pid" 2>/dev/null || true
    done
    at_most 'memory' "$(peak "$server_pid")" 256 MB
    alive
}

# A server's attack on a real client whose user asks for something meanwhile; `publishing` is what
# the client publishes.
publishing=()
treated() {
    local what=$1 began
    shift
    begin "$server" server "$hostile" "$what" --identity server --listen 10.201.0.2:4433 --allow "$key" --count 1000 --seconds 60 "$@"
    await server.out marline://
    string=$(head -n1 server.out)
    begin "$client" client "$marline" client --identity client --server "$string" --control client.sock --socks 127.0.0.1:1080 --path c1 "${publishing[@]}"
    client_pid=${running[-1]}
    sleep 2
    attack "$client" program-upload --socks 127.0.0.1:1080 --count 100 --target $deaf --each 1000000 --seconds 600 || true
    began=$EPOCHREALTIME
    "$marline" status --control client.sock >/dev/null 2>&1 || true
    at_most "$what${2:+ }${2-}${publishing:+, published}: status" "$(calculate "$EPOCHREALTIME - $began")" 2 s
    at_most "  memory" "$(peak "$client_pid")" 256 MB
    try '  the client lives' kill -0 "$client_pid"
    stop
}
servers() {
    stop
    local what
    for what in server-deaf server-silent server-reset server-opens; do treated $what; done
    publishing=(--publish tcp:8443=127.0.0.1:9)
    treated server-opens
    publishing=()
    for what in claims crumbs symbols; do treated server-frames --wave $what; done
}

began=$SECONDS
for stage in "${chosen[@]}"; do
    targets
    $stage
    stop
done
echo "after $((SECONDS - began)) s"
exit "$failed"
