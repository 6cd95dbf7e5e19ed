#!/usr/bin/env bash
# The OpenWrt package without OpenWrt: its files are installed into a staged root by the Makefile's
# own lines, and its init script is run by stubs of UCI and procd, which write down what they are
# given. The configurations that come of UCI are then read by the program itself: MARLINE=FILE,
# target/release/marline without.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
marline=$(realpath "${MARLINE:-$here/../../target/release/marline}")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0
check() {
    local what=$1
    shift
    if "$@" >"$root/said" 2>&1; then printf '%-60s ok\n' "$what"; else
        printf '%-60s FAILED\n' "$what"
        sed 's/^/    /' "$root/said"
        failed=1
    fi
}

# The lines of Package/marline/install, as make runs them.
sed -n '/^define Package\/marline\/install$/,/^endef$/p' "$here/Makefile" | sed '1d;$d' >"$root/install.txt"
mkdir -p "$root/build"
cp "$marline" "$root/build/marline"
cat >"$root/Makefile" <<TEXT
INSTALL_DIR := install -d -m 755
INSTALL_BIN := install -m 755
INSTALL_CONF := install -m 600
INSTALL_DATA := install -m 644
PKG_BUILD_DIR := $root/build
define Package/marline/install
$(cat "$root/install.txt")
endef
all:
	\$(call Package/marline/install,$root/staged)
TEXT
check 'make installs into a staged root' make -s -C "$here" -f "$root/Makefile" all
for file in usr/bin/marline etc/config/marline etc/init.d/marline usr/lib/marline/uci.sh; do
    check "there is /$file" test -s "$root/staged/$file"
done
check 'the init script is one for sh' sh -n "$root/staged/etc/init.d/marline"

# A configuration with everything that is hard: lists, quotes, a backslash, an option where a list
# may be, and a section that is not enabled.
key=$("$marline" identity new "$root/key" 2>/dev/null)
cat >"$root/staged/etc/config/marline" <<TEXT
config client 'main'
	option enabled '1'
	option server 'marline://${key#marline-pub:}@192.0.2.1:4433'
	list path 'wan,cost=1'
	list path 'wwan*'
	option socks 'off'
	option tun 'marline0'
	option tun_setup 'gateway'
	list tun_route '0.0.0.0/0'
	option forward 'tcp:127.0.0.1:8080=a"b\c.example:80'
config server 'server'
	option enabled '1'
	option allow_clients_file '$root/clients'
	list allow_target '10.0.0.0/8:443'
config client 'main_b'
	option enabled '0'
	option wait '1s'
config client 'other'
	option enabled '0'
	option server 'nothing'
TEXT
printf '%s van\n' "$key" >"$root/clients"

# Stubs of /lib/functions.sh and of procd: `config_*` by a small reader of UCI's text, as UCI's own
# shell has them.
cat >"$root/stubs.sh" <<'TEXT'
CALLS=$ROOT/calls
config_load() {
	local word name value
	section=''
	SECTIONS=''
	while read -r word name value; do
		value=${value#\'} value=${value%\'} name=${name#\'} name=${name%\'}
		case $word in
		config)
			section=$value
			SECTIONS="$SECTIONS $section"
			eval "CONFIG_${section}_TYPE=\$name"
			config_cb "$name" "$value"
			;;
		option)
			eval "CONFIG_${section}_$name=\$value"
			option_cb "$name" "$value"
			;;
		list)
			eval "count=\${CONFIG_${section}_${name}_LENGTH:-0}"
			count=$((count + 1))
			eval "CONFIG_${section}_${name}_LENGTH=$count; CONFIG_${section}_${name}_ITEM$count=\$value"
			eval "CONFIG_${section}_$name=\"\${CONFIG_${section}_$name:+\$CONFIG_${section}_$name }\$value\""
			list_cb "$name" "$value"
			;;
		esac
	done <"$IPKG_INSTROOT/etc/config/$1"
}
config_get() { eval "$1=\${CONFIG_$2_$3}"; }
config_get_bool() { eval "$1=\${CONFIG_$2_$3:-$4}"; }
config_foreach() {
	local section type
	for section in $SECTIONS; do
		eval "type=\$CONFIG_${section}_TYPE"
		[ "$type" != "$2" ] || "$1" "$section" "$2"
	done
}
config_list_foreach() {
	local number=1 length item
	eval "length=\${CONFIG_$1_$2_LENGTH:-0}"
	while [ $number -le "$length" ]; do
		eval "item=\${CONFIG_$1_$2_ITEM$number}"
		"$3" "$item"
		number=$((number + 1))
	done
}
procd_open_instance() { echo "open $1" >>"$CALLS"; }
procd_set_param() { echo "set $*" >>"$CALLS"; }
procd_close_instance() { echo "close" >>"$CALLS"; }
procd_add_reload_trigger() { echo "trigger $1" >>"$CALLS"; }
start() { start_service; }
TEXT
for shell in dash 'busybox sh'; do
    command -v ${shell%% *} >/dev/null || continue
    rm -rf "$root/calls" "$root/run" "$root/keys"
    ROOT=$root IPKG_INSTROOT=$root/staged PROGRAM=$root/staged/usr/bin/marline FOLDER=$root/run KEYS=$root/keys \
        sh -c 'for what in "start_service; service_triggers" reload_service; do
            $1 -c ". $2/stubs.sh; . $2/staged/etc/init.d/marline; $what" || exit 1
        done' - "$shell" "$root" >"$root/out" 2>&1 || { cat "$root/out"; failed=1; }
    check "$shell: two instances, started and reloaded" test "$(grep -c '^open' "$root/calls")" = 4
    check "$shell: none that is not enabled" test ! -e "$root/run/client-other.toml"
    check "$shell: a signal reloads" grep -q 'set reload_signal HUP' "$root/calls"
    check "$shell: and a change of the file is one" grep -q "set file $root/run/client-main.toml" "$root/calls"
    check "$shell: and so is one of the list of clients" grep -qx "set file $root/run/server-server.toml $root/clients" "$root/calls"
    check "$shell: a client has no such list" grep -qx "set file $root/run/client-main.toml" "$root/calls"
    check "$shell: time to end in good order" grep -qx 'set term_timeout 20' "$root/calls"
    check "$shell: UCI's changes reload" grep -q 'trigger marline' "$root/calls"
    check "$shell: never given up" grep -q 'set respawn 3600 5 0' "$root/calls"
    check "$shell: the key is the service's alone" test "$(stat -c %a "$root/keys/identity")" = 600
    # The program reads it: what is wrong then is the name in the forward, of which nothing is lost.
    check "$shell: quotes and backslashes survive" grep -qF 'forward = ["tcp:127.0.0.1:8080=a\"b\\c.example:80"]' "$root/run/client-main.toml"
    check "$shell: lists are lists" grep -qx 'path = \["wan,cost=1", "wwan\*"\]' "$root/run/client-main.toml"
    check "$shell: nothing of another section" test "$(grep -c wait "$root/run/client-main.toml")" = 0
    check "$shell: the server's configuration is read" sh -c '"$1" doctor server --json --config "$2" | grep -q verdict' - "$marline" "$root/run/server-server.toml"
    sed -i '/^forward/d' "$root/run/client-main.toml"
    check "$shell: the client's configuration is read" sh -c '"$1" doctor client --json --config "$2" | grep -q verdict' - "$marline" "$root/run/client-main.toml"
    check "$shell: and a mistake would be found" sh -c '! { sed "s/^socks/socs/" "$2" >"$2.wrong"; "$1" doctor client --json --config "$2.wrong" | grep -q verdict; }' - "$marline" "$root/run/client-main.toml"
done
exit $failed
