# Devices that come and go in the laboratory of common.sh; read by scripts, not run. A modem is a
# device at the client, in a network of a number: 1 or 2.

# By which IP protocol the client reaches the server; with 6, its devices have no other.
family=4

mac_of() { echo "02:00:00:00:00:0$1"; }
# Plugs a modem in: a device of this name, in the network of this number. Its index is new each
# time. Few processes, since it is done a thousand times.
plug_in() {
    ip link add "$1" address "$(mac_of "$2")" netns "$client" type veth peer name "a$2" netns "$anchor"
    {
        echo "address add 10.201.$2.1/24 dev a$2"
        [[ $family == 4 ]] || echo "address add fd42:$2::1/64 dev a$2 nodad"
        echo "link set a$2 up"
    } | ip -n "$anchor" -batch -
    ip -n "$client" link set "$1" up
    configure "$1" "$2"
}
configure() {
    if [[ $family == 6 ]]; then
        printf '%s\n' "address add fd42:$2::2/64 dev $1 nodad" "route add default via fd42:$2::1 dev $1 metric $2"
    else
        printf '%s\n' "address add 10.201.$2.2/24 dev $1" "route add default via 10.201.$2.1 dev $1 metric $2"
    fi | ip -n "$client" -batch -
}
unplug() { ip -n "$client" link del "$1"; }
unplug_all() {
    local device
    for device in $(ip -n "$client" -o link | grep -oE '(wwan|net)[0-9]+'); do
        unplug "$device" 2>/dev/null || true
    done
}

# Ends a program by a signal and waits until it has gone.
end() {
    kill "-$2" "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
descriptors_of() { ls "/proc/$1/fd" | wc -l; }
# Memory of a process (kB).
memory_of() { awk '/VmRSS/ { print $2 }' "/proc/$1/status"; }
# What the client's status says of a path.
field() { python3 "$here/path.py" client.sock "$1" "$2" 2>/dev/null || echo silent; }
state() { field "$1" state; }
# Waits until a path is in a state, and says how long after $1 that was; `at_server` by its address
# there.
becomes() { python3 "$here/path.py" client.sock "$3" state "$4" "$1" "$2"; }
at_server() { python3 "$here/path.py" server.sock "$3" state "$4" "$1" "$2"; }
