# UCI to the configuration of marline; sourced after /lib/functions.sh, which has the functions
# config_*.

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

# Called by config_load for each section and each option: their names are noted in
# OPTIONS_<section>.
config_cb() {
	noted=${2:-$CONFIG_SECTION}
}

option_cb() {
	local known
	[ -n "$noted" ] || return 0
	eval "known=\$OPTIONS_$noted"
	case " $known " in
	*" $1 "*) ;;
	*) eval "OPTIONS_$noted=\"\$known \$1\"" ;;
	esac
}

list_cb() {
	option_cb "$1"
}

# A section as TOML on standard output.
section_to_toml() {
	local section=$1 option key value entries options
	eval "options=\$OPTIONS_$section"
	for option in $options; do
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
