# UCI to the configuration of marline; sourced after /lib/functions.sh, which has the functions config_*.

# Flags that may be given several times, which are lists in TOML.
LISTS=" path forward publish live tun_route tun_announce tun_dns tun_rule scheduler metrics_name listen advertise \
allow_client allow_target deny_target nat64 allow_publish publish_address allow_prefix "

# A text in TOML.
toml_text() {
	local text
	text=$(printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g')
	printf '"%s"' "$text"
}

# One entry of a list, with a comma before all but the first.
toml_entry() {
	[ -z "$entries" ] || entries="$entries, "
	entries="$entries$(toml_text "$1")"
}

# A section as TOML on standard output. OPTIONS_<section> has the names of its options, as config_load leaves them in
# CONFIG_<section>_<option>.
section_to_toml() {
	local section=$1 option key value entries
	for option in $(section_options "$section"); do
		[ "$option" != enabled ] || continue
		key=$(printf '%s' "$option" | tr _ -)
		case $LISTS in
		*" $option "*)
			entries=''
			config_list_foreach "$section" "$option" toml_entry
			# An `option` where a list may be is a list of one.
			if [ -z "$entries" ]; then
				config_get value "$section" "$option"
				toml_entry "$value"
			fi
			printf '%s = [%s]\n' "$key" "$entries"
			;;
		*)
			config_get value "$section" "$option"
			printf '%s = %s\n' "$key" "$(toml_text "$value")"
			;;
		esac
	done
}

# The names of a section's options, in order of the alphabet.
section_options() {
	set | sed -n "s/^CONFIG_$1_\([a-z0-9_]*\)=.*/\1/p" | grep -v '_ITEM[0-9]*$\|_LENGTH$\|^TYPE$' | sort -u
}
