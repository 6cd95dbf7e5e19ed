# Programs that people use, from the host behind the client; read by lab/site.sh, whose namespaces
# and functions these stages need. Each needs more than lab/site.sh itself does.

# A second address of the world's, for what tells servers apart.
other=9.9.9.9

# The world's names, its STUN servers, its shell and its speed test.
world_serves() {
    begin "$anchor" names python3 -u "$here/resolver.py" "$world" example.net "$world"
    ip -n "$anchor" address add "$other" dev lo
    begin "$anchor" stun python3 -u "$here/stun.py" serve "$world" "$other"
    begin "$anchor" iperf iperf3 -s --forceflush -B "$world"
    ssh-keygen -q -t ed25519 -N '' -f "$folder/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$folder/user_key"
    cat >"$folder/sshd_config" <<TEXT
Port 2222
ListenAddress $world
HostKey $folder/host_key
AuthorizedKeysFile $folder/user_key.pub
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
TEXT
    mkdir -p /run/sshd
    begin "$anchor" sshd "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f "$folder/sshd_config"
    await names.out ready
    await stun.out ready
    await iperf.out listening
    await sshd.err listening
}

# Every hop up to the world.
hops() {
    local found
    found=$(lan traceroute "$@" -n -q 1 -w 2 -m 6)
    grep -q " ${*: -1} " <<<"$found" || { tail -1 <<<"$found"; return 1; }
    echo "$(grep -c ' ms' <<<"$found") hops"
}

named_by_dig() { [[ $(lan dig +short +time=2 "@$world" example.net) == "$world" ]]; }

# Mb/s, up or with -R down; a site's network would not put up with less.
rate() {
    lan iperf3 -c "$world" -t 4 -J "$@" | python3 -c '
import json, sys
rate = json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 1e6
print(f"{rate:.0f} Mb/s")
sys.exit(rate < 20)'
}

# A shell that is idle while a path goes for ten seconds, and answers within two seconds of being
# asked.
idle_shell() {
    lan python3 - "$folder" "$world" <<'TEXT' &
import subprocess, sys, time
folder, world = sys.argv[1:]
shell = subprocess.Popen(
    ["ssh", "-F", "none", "-T", "-p", "2222", "-i", f"{folder}/user_key", "-o", "StrictHostKeyChecking=no",
     "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", f"root@{world}", "cat"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def says(word):
    begun = time.monotonic()
    shell.stdin.write(word + b"\n")
    assert shell.stdout.readline() == word + b"\n"
    return time.monotonic() - begun
says(b"one")
open(f"{folder}/idle", "w").close()
time.sleep(12)
late = says(b"two")
print(f"{late:.2f} s")
sys.exit(late > 2)
TEXT
    local shell=$!
    for _ in $(seq 100); do
        [[ ! -e $folder/idle ]] || break
        sleep 0.1
    done
    ip -n "$anchor" link set a1 down
    sleep 10
    ip -n "$anchor" link set a1 up
    wait "$shell"
}

# Five seconds of video, by SRT, from the host to the world; how many frames are whole there.
video() {
    begin "$anchor" srt timeout 30 srt-live-transmit "srt://$world:5004?mode=listener" file://con
    sleep 1
    ip netns exec "$host" timeout 20 ffmpeg -loglevel error -re -f lavfi -i testsrc=size=320x240:rate=25 -t 5 \
        -c:v mpeg2video -b:v 2M -f mpegts "srt://$world:5004?latency=300000" </dev/null
    frames "$folder/srt.out" 115
}

# A file of MPEG-TS has as many frames as that at least, and no packet of it is missing.
frames() {
    local count
    sleep 1
    python3 - "$1" <<'TEXT'
import sys
data, last = open(sys.argv[1], "rb").read(), {}
for at in range(0, len(data) // 188 * 188, 188):
    packet = data[at : at + 188]
    pid, counter = (packet[1] & 31) << 8 | packet[2], packet[3] & 15
    if packet[3] & 16:
        if last.get(pid, counter - 1 & 15) != counter - 1 & 15:
            sys.exit(f"packets are missing at byte {at} of {len(data)}")
        last[pid] = counter
TEXT
    count=$(ffprobe -loglevel quiet -count_frames -select_streams v:0 -show_entries stream=nb_read_frames -of csv=p=0 \
        "$1" | head -1 | tr -d ',')
    echo "$count frames"
    ((count >= $2))
}

programs() {
    stage='programs'
    world_serves
    start
    # As in `everything`.
    patience=15 soon lan ping -c 1 -W 1 "$world6" >/dev/null || true
    try 'traceroute' hops "$world"
    try 'traceroute, IPv6' hops -6 "$world6"
    try 'traceroute by ICMP' hops -I "$world"
    try 'dig' named_by_dig
    try 'iperf3, up' rate
    try 'iperf3, down' rate -R
    try 'ffmpeg, srt-live-transmit' video
    try 'STUN by the proxy' ip netns exec "$client" timeout 20 python3 "$here/stun.py" ask 127.0.0.1:1080 \
        "$world" "$other"
    try 'idle ssh, a path is cut' idle_shell
    stop_one TERM "$client_pid"
    stop_one TERM "$server_pid"
    try 'nothing is left' same
    two_tunnels
    names_while_a_link_dies
    a_studio_calls
}

# A second tunnel that would have the first one's routes.
two_tunnels() {
    stage='two tunnels'
    start
    "$marline" identity new second >"$folder/second.pub" 2>/dev/null
    begin "$server" server2 "$marline" server --identity second --listen 10.201.0.2:4434 --allow-client "$key" \
        --control off --tun=tun-t --tun-pool 10.78.0.0/24
    local server2=${running[-1]}
    await server2.out marline://
    begin "$client" second "$marline" client --identity client --server "$(head -1 "$folder/server2.out")" --socks off \
        --path c1 --path c2 --control off --tun=tun-d --tun-setup --tun-route 0.0.0.0/0
    local second=${running[-1]}
    await second.err 'has that route'
    try 'the first one goes on' soon one_page
    stop_one TERM "$second"
    stop_one TERM "$server2"
    try 'the second one has gone' soon one_page
    stop_one TERM "$client_pid"
    stop_one TERM "$server_pid"
    try 'nothing is left' same
}

# How long names fail when the link dies by which they are asked for: the longest time without an
# answer.
names_while_a_link_dies() {
    stage='names, a link dies'
    mkdir -p "${resolv%/*}"
    printf 'nameserver 192.168.77.2\n' >"$resolv"
    routes+=(--tun-dns "$world")
    start
    ip netns exec "$client" timeout 30 python3 - "$folder" >"$folder/silent" <<'TEXT' &
import os, subprocess, sys, time
begun = last = time.monotonic()
longest = 0
while time.monotonic() - begun < 14:
    asked = subprocess.run(["dig", "+short", "+time=1", "+tries=1", "example.net"], capture_output=True)
    now = time.monotonic()
    if asked.stdout.strip() == b"8.8.8.8":
        longest, last = max(longest, now - last), now
    time.sleep(0.1)
print(f"{max(longest, time.monotonic() - last):.2f} s")
TEXT
    local asking=$! link
    # Whichever carries them: each link dies in turn.
    for link in a1 a2; do
        sleep 2
        ip -n "$anchor" link set "$link" down
        sleep 4
        ip -n "$anchor" link set "$link" up
    done
    wait "$asking" || true
    within_two() { cat "$folder/silent" && [[ $(bc <<<"$(cut -d' ' -f1 "$folder/silent") < 2") == 1 ]]; }
    try 'longest without a name' within_two
    stop_one TERM "$client_pid"
    stop_one TERM "$server_pid"
    rm -f "$resolv"
    routes=(--tun-route 0.0.0.0/0 --tun-route ::/0)
}

# The van's encoder listens, and the studio calls the server's port.
a_studio_calls() {
    stage='a studio calls'
    echo "publish=udp:9000 $key the van" >"$folder/clients"
    begin "$server" server "$marline" server --identity server --listen 10.201.0.2:4433 --allow-clients-file clients \
        --control off
    server_pid=${running[-1]}
    await server.out marline://
    begin "$client" client "$marline" client --identity client --server "$(head -1 "$folder/server.out")" \
        --path c1 --path c2 --socks off --control client.sock --publish udp:9000=127.0.0.1:9000,latency=300ms
    client_pid=${running[-1]}
    await client.err 'leads to'
    begin "$client" encoder ffmpeg -loglevel error -re -f lavfi -i testsrc=size=320x240:rate=25 -t 20 \
        -c:v mpeg2video -b:v 2M -f mpegts 'srt://127.0.0.1:9000?mode=listener&latency=300000'
    sleep 1
    begin "$anchor" studio timeout 10 srt-live-transmit 'srt://10.201.0.2:9000?mode=caller&latency=300' file://con
    # A path goes, and comes back.
    sleep 3
    ip -n "$anchor" link set a1 down
    sleep 3
    ip -n "$anchor" link set a1 up
    sleep 5
    try 'what it received' frames "$folder/studio.out" 180
    try 'status' shows 'published udp:9000, leads to udp:127.0.0.1:9000: open'
    # Taken away while it runs.
    echo "$key the van" >"$folder/clients"
    kill -HUP "$server_pid"
    withdrawn() { ! ip netns exec "$server" ss -lun | grep -q ':9000 '; }
    try 'withdrawn by SIGHUP' soon withdrawn
    stop_one TERM "$client_pid"
    stop_one TERM "$server_pid"
}
