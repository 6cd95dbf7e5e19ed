#!/usr/bin/env bash
# Runs the commands of the walks as they stand there: lab/walk.sh [WALK]...
#
#   site       docs/SITE.md, between network namespaces: host ── gateway ══ anchor ── server
#   van        docs/VAN.md, likewise:                            van ══ anchor ── studio
#   library    docs/LIBRARY.md, in a folder beside a link to this repository
#   simulator  docs/SIMULATOR.md, in this repository
#   readme     README.md's commands for one host, but for the tests, which .ci/run runs
#
# All of them when none is named. `marline-pub:…` and `marline://…` are what the commands before
# have printed. The anchor is the world: it has 1.1.1.1, and 9.9.9.9, a name server that knows
# example.net. See lab/README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

top=$(realpath "$here/..")
host=marline-lab-$$-h
all_failed=0

# The namespaces of a walk. What it calls its two ends, and the names of the links between them,
# differ.
declare -A side
lay_out() {
    local client_name=$1 server_name=$2 first=$3 second=$4 name words router device metric
    needs ping curl python3 ${5:-}
    folder=$(mktemp -d)
    trap 'clean_up; ip netns del $host 2>/dev/null || true' EXIT
    trap 'exit 130' INT TERM
    for name in $client $anchor $server $host; do
        ip netns add "$name"
        ip -n "$name" link set lo up
    done
    wire "$client" "$first" 192.0.2.2/24 "$anchor" a1 192.0.2.1/24
    wire "$client" "$second" 203.0.113.2/24 "$anchor" a2 203.0.113.1/24
    wire "$server" eth0 198.51.100.7/24 "$anchor" a0 198.51.100.1/24
    wire "$client" lan0 192.168.7.1/24 "$host" h0 192.168.7.2/24
    for words in "$client 192.0.2.1 $first 100" "$client 203.0.113.1 $second 200" "$server 198.51.100.1 eth0 100" \
        "$host 192.168.7.1 h0 100"; do
        read -r name router device metric <<<"$words"
        ip -n "$name" route add default via "$router" dev "$device" metric "$metric"
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
    side=([$client_name]=$client [$server_name]=$server [host]=$host)
}

# A command in its namespace, with a home of its own; instead of this shell if `instead` is `exec`.
instead=
as() {
    local name=$1
    shift
    mkdir -p "$folder/$name"
    # The page is read from standard input, which is none of the command's.
    $instead ip netns exec "${side[$name]}" env -i HOME="$folder/$name" XDG_RUNTIME_DIR="$folder/$name" \
        PATH="$folder/bin:$PATH" bash -c "cd \$HOME; $*" </dev/null
}

# A page's lines that begin with `NAME# `, of whom `side` knows.
key='' string='' count=0 last=''
between_namespaces() {
    local line name command words result number=0
    while IFS= read -r line; do
        [[ $line =~ ^([a-z]+)#\ (.*)$ && ${side[${BASH_REMATCH[1]}]:-} ]] || continue
        name=${BASH_REMATCH[1]} command=${BASH_REMATCH[2]}
        count=$((count + 1)) stage="$count: $name"
        words=${command//marline-pub:…/$key}
        words=${words//marline:\/\/…/\'$string\'}
        if [[ $words == *' &' ]]; then
            instead=exec
            as "$name" "exec ${words% &}" >"$name-$count.out" 2>"$name-$count.err" &
            running+=($!)
            instead=
            case $command in
            'marline server'*) await "$name-$count.out" marline:// && string=$(head -1 "$name-$count.out") ;;
            'marline client'*--tun*) await "$name-$count.err" 'packets of up to' ;;
            'marline client'*) await "$name-$count.err" 'path is active' ;;
            esac
            say "${command:0:60}" ok
        elif result=$(as "$name" "$words" 2>&1); then
            # The client's key is the last one.
            key=$(grep -o 'marline-pub:[a-z0-9]*' <<<"$result" || echo "$key")
            last=$result
            say "${command:0:60}" "${result##*$'\n'}"
        else
            # Warnings of the doctor are no failure.
            [[ $? == 1 && $command == *doctor* ]] && say "${command:0:60}" 'warnings' ||
                { say "${command:0:60}" "FAILED: $result"; cat ./*.err; }
        fi
    done <"$top/docs/$1"
    stage='all'
    if ((count > 0 && count <= $2)); then say 'commands' "$count"; else say 'commands' "FAILED: $count"; fi
}

# A page's shell fences without prompts, each line a command; a fence of another language below a
# line that ends in `FILE`: is written to that file first.
on_one_host() {
    local line lang='' file='' text='' command='' count=0
    while IFS= read -r line <&3; do
        if [[ $line =~ ^\`\`\`(.*)$ ]]; then
            if [[ $lang ]]; then
                if [[ $lang != sh && $file ]]; then
                    mkdir -p "$(dirname "$file")"
                    printf %s "$text" >"$file"
                    say "wrote $file" "$(wc -l <"$file") lines"
                fi
                lang='' file=''
            else
                lang=${BASH_REMATCH[1]:-text} text=''
            fi
        elif [[ ! $lang ]]; then
            if [[ $line =~ \`([^\` ]+)\`:$ ]]; then file=${BASH_REMATCH[1]}; elif [[ $line ]]; then file=''; fi
        elif [[ $lang != sh ]]; then
            text+=$line$'\n'
        elif [[ $line == *\\ ]]; then
            command+=${line%\\}
        else
            command+=$line
            [[ $command =~ ^[a-z]+[\$#]\  || $command == "${2:-}"* && ${2:-} ]] || run "$command"
            command=''
        fi
    done 3<"$top/$1"
    stage='all'
    if ((count > 0)); then say 'commands' "$count"; else say 'commands' 'FAILED: none'; fi
}
# One of them, in this shell: `cd` is meant for those that follow.
run() {
    count=$((count + 1)) stage="$count"
    if eval "$1" >"$folder/out" 2>&1 </dev/null; then
        say "${1:0:72}" "$(tail -1 "$folder/out" | cut -c 1-60)"
    else
        say "${1:0:72}" "FAILED: $(tail -5 "$folder/out")"
    fi
}

walk() {
    case $1 in
    site)
        lay_out gateway server dsl0 wwan0
        between_namespaces SITE.md 15
        ;;
    van)
        lay_out van studio wwan0 wwan1 'ffmpeg ffprobe'
        between_namespaces VAN.md 15
        stage='what the studio has'
        # A decoder's complaints would stand before the count: of 10 s with 25 frames each nothing
        # may be missing.
        if [[ $last =~ ^[0-9]+$ ]] && ((last >= 245)); then say 'frames' "$last"; else say 'frames' "FAILED: $last"; fi
        ;;
    library)
        folder=$(mktemp -d)
        trap 'rm -rf "$folder"' EXIT
        ln -s "$top" "$folder/marline"
        cd "$folder"
        on_one_host docs/LIBRARY.md
        ;;
    simulator | readme)
        folder=$(mktemp -d)
        trap 'rm -rf "$folder"' EXIT
        cd "$top"
        if [[ $1 == simulator ]]; then on_one_host docs/SIMULATOR.md; else on_one_host README.md 'cargo test'; fi
        ;;
    *)
        echo "error: no walk is called $1: site, van, library, simulator, readme" >&2
        exit 2
        ;;
    esac
    exit "$failed"
}

(($#)) || set -- site van library simulator readme
marline=$(realpath -m "$marline")
for name; do
    echo "== $name"
    (walk "$name") || all_failed=1
done
exit "$all_failed"
