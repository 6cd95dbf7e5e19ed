#!/usr/bin/env bash
# What a program does, as hashes: taken before and after a change that must change nothing, and compared. See
# lab/README.md.
set -euo pipefail

marline=${MARLINE:-target/release/marline}
longest=20

usage() {
    cat <<TEXT
Usage: lab/behaviour.sh [--than FILE] [help_of|results|session]... > FILE

  --than  a file that an earlier program's run has written: print what differs, and end with code 1 if
          something does

Prints a hash for the help of every command; for the results of every scenario that comes with the program
(seeds 1 and 2 of examples and validate, seed 1 of the others; of these, those that take longer than
$longest s are left out, and named); and the names of all fields of \`status --json\` and of the metrics of a session over
loopback, with a stream, a live entry and a budget. MARLINE is the program [default: $marline].
Needs python3 and curl.
TEXT
}

than=
parts=()
while (($#)); do
    case $1 in
    --than) than=$(realpath "$2") && shift ;;
    -h | --help) usage && exit 0 ;;
    help_of | results | session) parts+=("$1") ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done

folder=$(mktemp -d)
mkdir "$folder/state"
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -rf "$folder"' EXIT
# Help names the program as it was called.
ln -s "$(realpath "$marline")" "$folder/marline"
cd "$folder"
export MARLINE_LOG=error COLUMNS=100
unset MARLINE

hash() { sha256sum | cut -c1-32; }

help_of() {
    local words=("$@") command
    ./marline "${words[@]}" --help >help.txt
    echo "help ${words[*]}: $(hash <help.txt)"
    for command in $(sed -n '/^Commands:/,/^$/s/^  \([a-z-]\+\) .*/\1/p' help.txt); do
        [[ $command == help ]] || help_of "${words[@]}" "$command"
    done
}

results() {
    local name seeds most
    for name in $(./marline sim list | sed -n '/^Scenarios/,/^$/s/^  \([^ ]\+\) .*/\1/p'); do
        case $name in
        examples/* | validate/*) seeds=2 most=3600 ;;
        *) seeds=1 most=$longest ;;
        esac
        if timeout $most ./marline sim run "$name" --seeds $seeds --json >result.json 2>error.txt; then
            echo "run $name: $(hash <result.json)"
        elif (($? == 124)); then
            echo "run $name: longer than $longest s" >&2
        else
            echo "run $name: $(hash <error.txt)"
        fi
    done
}

# Names in JSON, and the types of their values.
fields() {
    python3 -c '
import json, sys
def walk(value, at):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, at + "." + key)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner, at + "[]")
    else:
        yield at
print("\n".join(sorted(set(walk(json.load(sys.stdin), "status")))))'
}

shown() {
    local end
    for end in client server; do
        ./marline status --json --control $end.sock | fields | sed "s/^/$end /"
    done
    for end in 1 2; do
        curl -s "http://127.0.0.1:1958$end/metrics" >metrics.txt
        sed -n 's/^# \(HELP\|TYPE\)/metrics \1/p; s/="[^"]*"/=/g; s/^\([a-z_]*\({[^}]*}\)\?\) .*/metrics \1/p' metrics.txt
    done
}

session() {
    local attempt
    ./marline identity new server >/dev/null 2>&1
    ./marline identity new client >key.txt 2>/dev/null
    XDG_STATE_HOME=$folder/state ./marline server --identity server --listen 127.0.0.1:0 --allow-client "$(cat key.txt)" \
        --control server.sock --metrics 127.0.0.1:19581 --live udp://127.0.0.1:19583,name=cam \
        --allow-target 127.0.0.1 >server.out &
    for attempt in $(seq 100); do
        ! grep -qs marline:// server.out || break
        sleep 0.1
    done
    XDG_STATE_HOME=$folder/state ./marline client --identity client --server "$(head -n1 server.out)" \
        --control client.sock --metrics 127.0.0.1:19582 --socks 127.0.0.1:19580 --path 127.0.0.1,budget=1GB \
        --path 127.0.0.2,cost=1 --live udp://127.0.0.1:19584,name=cam,objects=auto &
    python3 -m http.server --bind 127.0.0.1 19585 >/dev/null 2>&1 &
    for attempt in $(seq 100); do
        ! curl -s --proxy socks5h://127.0.0.1:19580 http://127.0.0.1:19585/ >/dev/null || break
        sleep 0.1
    done
    python3 -c '
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link = socket.create_connection(("127.0.0.1", 19580))
link.sendall(b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x4c\x81")
for number in range(600):
    out.sendto(b"\x47" * 188 * 7, ("127.0.0.1", 19584))
    time.sleep(0.01)
' &
    # Some appear when they were measured first.
    for attempt in 1 2 3 4; do
        sleep 1
        shown
    done | sort -u
}

((${#parts[@]})) || parts=(help_of results session)
for part in "${parts[@]}"; do
    "$part"
done >found.txt
cat found.txt
if [[ $than ]]; then
    # What one of both had no time for says nothing.
    if diff <(grep -v '^run' "$than") <(grep -v '^run' found.txt) >&2 &&
        ! join -t: <(grep '^run' "$than" | sort -t: -k1,1) <(grep '^run' found.txt | sort -t: -k1,1) |
            awk -F: '$2 != $3 { print "differs: " $1; wrong = 1 } END { exit !wrong }' >&2; then
        echo "nothing differs" >&2
    else
        exit 1
    fi
fi
