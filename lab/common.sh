# What the laboratory's scripts share; read by them, not run. Three network namespaces:
#
#   client ── c1 ── a1 ┐        ┌ a0 ── s0 ── server
#          ── c2 ── a2 ┴ anchor ┘
#
# 10.201.1.0/24, 10.201.2.0/24 and 10.201.0.0/24; .1 is the anchor, .2 the host. Everything is removed at the end, also
# after an error or a signal.

marline=${MARLINE:-target/release/marline}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
    echo "SKIPPED: $1" >&2
    exit 0
}

# Can this machine have a namespace with two ends of a cable and a TUN device? Root in a container often cannot.
may() {
    local name=marline-lab-$$-t status=0
    ip netns add "$name" || return 1
    ip -n "$name" link add l0 type veth peer name l1 && ip -n "$name" tuntap add dev l2 mode tun || status=1
    ip netns del "$name"
    return $status
}

# Ends well where this machine cannot have a laboratory; the words are commands that are needed.
needs() {
    [[ $(id -u) == 0 ]] || skip "network namespaces need root"
    [[ -c /dev/net/tun ]] || skip "there is no /dev/net/tun"
    local command refused
    for command in ip "$@"; do
        command -v "$command" >/dev/null || skip "$command is not installed"
    done
    refused=$(may 2>&1) || skip "no network namespace with a TUN device: ${refused:-refused}"
    [[ -x $marline ]] || { echo "error: no program at $marline: cargo build --release, or set MARLINE" >&2; exit 1; }
    marline=$(realpath "$marline")
}

folder=
client=marline-lab-$$-c anchor=marline-lab-$$-a server=marline-lab-$$-s
running=()

stop() {
    local pid
    for pid in "${running[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    running=()
}

clean_up() {
    trap - EXIT INT TERM
    set +e
    stop
    for name in $client $anchor $server; do
        ip netns del "$name" 2>/dev/null || true
        rm -rf "/etc/netns/$name"
    done
    rm -rf "$folder"
}

# Joins two namespaces: NAMESPACE DEVICE ADDRESS of one end, and of the other.
wire() {
    ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
    ip -n "$1" address add "$3" dev "$2"
    ip -n "$4" address add "$6" dev "$5"
    ip -n "$1" link set "$2" up
    ip -n "$4" link set "$5" up
}

# Builds the namespaces, and keys for both ends in the folder that it makes and enters.
build() {
    folder=$(mktemp -d)
    trap clean_up EXIT
    trap 'exit 130' INT TERM
    local name ends side near far number
    for name in $client $anchor $server; do
        ip netns add "$name"
        ip -n "$name" link set lo up
    done
    for ends in "$client c1 a1 1" "$client c2 a2 2" "$server s0 a0 0"; do
        read -r side near far number <<<"$ends"
        wire "$side" "$near" "10.201.$number.2/24" "$anchor" "$far" "10.201.$number.1/24"
    done
    cd "$folder"
    # What programs keep is forgotten with the folder.
    export XDG_STATE_HOME=$folder/state
    "$marline" identity new server >/dev/null 2>&1
    key=$("$marline" identity new client 2>/dev/null)
}

# Lets the anchor route, for paths without an emulated link.
routed() {
    ip netns exec "$anchor" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    ip -n "$server" route add 10.201.0.0/16 via 10.201.0.1
    local number
    for number in 1 2; do
        ip -n "$client" route add 10.201.0.0/24 via "10.201.$number.1" dev "c$number" metric "$number"
    done
}

# Starts a program in a namespace, its output in a file of that name.
begin() {
    local namespace=$1 log=$2
    shift 2
    # The last one's lines must not be taken for this one's.
    : >"$folder/$log.out"
    : >"$folder/$log.err"
    ip netns exec "$namespace" "$@" >"$folder/$log.out" 2>"$folder/$log.err" &
    running+=($!)
}

ticks=$(getconf CLK_TCK)
# User and system time of processes, in ticks.
cpu() {
    local pid sum=0
    for pid in "$@"; do
        sum=$((sum + $(sed 's/.*) //' "/proc/$pid/stat" | awk '{ print $12 + $13 }')))
    done
    echo $sum
}

# Waits until a file has a line like that, for 20 s or the seconds that are given.
await() {
    local file=$folder/$1 pattern=$2
    for _ in $(seq $((10 * ${3:-20}))); do
        grep -q -- "$pattern" "$file" 2>/dev/null && return
        sleep 0.1
    done
    echo "error: no \`$pattern\` in $1:" >&2
    cat "$folder"/*.err >&2
    exit 1
}

# The keys of a link as flags of `marline link`.
flags() {
    local key
    for key in ${1//,/ }; do
        printf -- '--%s %s ' "${key%%=*}" "${key#*=}"
    done
}

# A table of what was tried: the stage, what, and what was found. `failed` is 1 once something was not.
failed=0 stage=
say() {
    printf '%-30s %-28s %s\n' "$stage" "$1" "$2"
    [[ $2 != FAILED* ]] || failed=1
}

# One word of what was found, or FAILED.
try() {
    local what=$1 result
    shift
    if result=$("$@" 2>&1); then
        say "$what" "${result:-ok}"
    else
        say "$what" "FAILED: ${result##*$'\n'}"
    fi
}

# At the client, for no longer than 30 s.
within() {
    ip netns exec "$client" timeout 30 "$@"
}

# Waits until `marline status` of the client shows a line like that.
shows() {
    for _ in $(seq 300); do
        "$marline" status --control client.sock 2>/dev/null | grep -qE -- "$1" && return
        sleep 0.1
    done
    echo "error: no \`$1\` in the status:" >&2
    "$marline" status --control client.sock >&2
    return 1
}
