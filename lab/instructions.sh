#!/usr/bin/env bash
# What the tunnel costs each end, in instructions of the program, as valgrind's callgrind counts
# them: for each packet of a live stream, and for each Mb of a bulk one. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

megabytes=40
datagrams=5000

usage() {
    cat <<TEXT
Usage: lab/instructions.sh [--megabytes N] [--datagrams N]

  --megabytes  of the bulk stream, a TCP connection [default: $megabytes]
  --datagrams  of the live stream, 1316 bytes each, 500 a second [default: $datagrams]

Two paths over veth pairs without limits. Below valgrind a program runs some fifty times as slowly, so that it carries
less than it could. From run to run the bulk stream's figures differ by some 5 % and the live one's by 20, as batches and
timers do. The kernel's part is not in it. Ends with code 1 when the bulk stream takes an end 15 % more than is kept in
this file.
MARLINE is the program [default: $marline]. Needs root, ip, iperf3, valgrind and /dev/net/tun.
TEXT
}

while (($#)); do
    case $1 in
    --megabytes) megabytes=$2 ;;
    --datagrams) datagrams=$2 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2 || { usage >&2 && exit 2; }
done

# Thousands of instructions for a Mb of the bulk stream, the mean of four runs on 30 November 2026.
declare -A kept=([client]=4310 [server]=3590)

needs iperf3 valgrind
build
routed

# An end below valgrind, which counts once it is asked to: END NAMESPACE ARGUMENT...
end() {
    local name=$1 namespace=$2
    shift 2
    begin "$namespace" "$name" valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$name.counts" \
        --log-file="$name.log" "$marline" "$@"
}

end server "$server" server --identity server --listen 10.201.0.2:4433 --allow-client "$key" --control off \
    --workers 1 --tun=lab-s --tun-setup=no-nat --tun-state off --allow-target 10.77.0.1
await server.out marline:// 120
end client "$client" client --identity client --server "$(head -n1 server.out)" --control off --socks off --tun=lab-c \
    --tun-setup --path c1 --path c2
ends=("${running[@]: -2}")
await client.err 'packets of up to' 120

# What was counted since the last time.
counted() {
    callgrind_control --dump="$1" "$2" >control.log
    sed -n 's/^totals: //p' "$(ls -t "$1".counts.* | head -1)"
}

over=0
# Runs iperf3 and prints what a unit of what it sends took each end: WHAT UNITS ARGUMENT...
measure() {
    local what=$1 units=$2 pid name each
    shift 2
    begin "$server" iperf iperf3 -s -1 --forceflush -B 10.77.0.1
    await iperf.out listening
    for pid in "${ends[@]}"; do callgrind_control --instr=on "$pid" &>control.log; done
    ip netns exec "$client" iperf3 -c 10.77.0.1 "$@" >iperf.txt
    for name in server client; do
        pid=${ends[$([[ $name == client ]] && echo 1 || echo 0)]}
        each=$(($(counted "$name" "$pid" 2>/dev/null) / units / 100))
        printf '%-5s %-7s %d.%d thousand instructions\n' "$what" "$name" $((each / 10)) $((each % 10))
        [[ $what == live ]] || ((each * 10 <= 115 * ${kept[$name]})) || over=1
        callgrind_control --instr=off "$pid" &>control.log
    done
    wait "${running[-1]}" || true
    unset 'running[-1]'
}

measure live "$datagrams" -u -b $((500 * 1316 * 8)) -l 1316 -t $((datagrams / 500))
measure bulk $((8 * megabytes)) -C cubic -n "${megabytes}M"
exit $over
