#!/usr/bin/env bash
# Installs, upgrades, removes and purges the Debian package in a clean Debian: packaging/test-deb.sh
# OLD.deb NEW.deb. Needs root and debootstrap; DEBIAN=DIR keeps the clean system for the next time.
set -euo pipefail
[[ $# == 2 ]] || { echo "usage: packaging/test-deb.sh OLD.deb NEW.deb" >&2; exit 2; }
old=$(realpath "$1") new=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
clean=${DEBIAN:-$folder/clean}
clean_up() {
    umount "$folder/root/proc" 2>/dev/null || true
    umount "$folder/root" 2>/dev/null || true
    rm -rf --one-file-system "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
"$here/debian-root.sh" "$clean" || { [[ $? == 3 ]] && exit 0 || exit 1; }
mkdir "$folder"/{root,upper,work}
# The clean system stays as it is.
mount -t tmpfs none "$folder/upper"
mkdir "$folder/upper"/{u,w}
mount -t overlay overlay -o "lowerdir=$clean,upperdir=$folder/upper/u,workdir=$folder/upper/w" "$folder/root"
mount -t proc none "$folder/root/proc"
trap 'umount "$folder/root/proc" "$folder/root" "$folder/upper" || true; rm -rf --one-file-system "$folder"' EXIT
cp "$old" "$folder/root/old.deb"
cp "$new" "$folder/root/new.deb"
within() { chroot "$folder/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }

failed=0
check() {
    local what=$1
    shift
    if "$@" >"$folder/said" 2>&1; then
        printf '%-70s ok\n' "$what"
    else
        printf '%-70s FAILED\n' "$what"
        sed 's/^/    /' "$folder/said"
        failed=1
    fi
}
has() { within test -e "$1"; }
lacks() { ! within test -e "$1"; }
is() { [[ $(within "${@:2}") == "$1" ]] || { within "${@:2}"; return 1; }; }

within find / -xdev -path /proc -prune -o -print | sort >"$folder/before"
check 'installs' within apt-get install -y --no-install-recommends /old.deb
check 'runs' within marline --version
check 'has a manual page for each end' has /usr/share/man/man1/marline-client.1.gz
check 'has completions for bash' within bash -c '. /usr/share/bash-completion/completions/marline; complete -p marline'
check 'made the user of the services' is marline id -un marline
check 'enabled nothing and made no key' lacks /etc/marline/identity
for unit in marline-server.service marline-client@van.service; do
    check "systemd understands $unit" within sh -c "said=\$(systemd-analyze verify --man=no /usr/lib/systemd/system/${unit/van/} 2>&1); echo \"\$said\"; test -z \"\$said\""
done
check 'sets a server up' within marline setup server --advertise 192.0.2.1 --yes
check 'the key is the services user'\''s alone' is 'marline 600' stat -c '%U %a' /etc/marline/identity
check 'the key is kept' within sh -c 'a=$(sha256sum /etc/marline/identity); marline identity new /etc/marline/identity --keep --owner marline; [ "$a" = "$(sha256sum /etc/marline/identity)" ]'
within sh -c 'echo MARLINE_LOG=debug >>/etc/default/marline; echo "# mine" >>/etc/marline/server.toml'
check 'upgrades' within apt-get install -y --no-install-recommends /new.deb
check 'keeps what was changed in its configuration' within grep -q MARLINE_LOG=debug /etc/default/marline
check 'keeps the configuration of the server' within grep -q '# mine' /etc/marline/server.toml
check 'removes' within apt-get remove -y marline
check 'the program is gone' lacks /usr/bin/marline
check 'the units are gone' lacks /usr/lib/systemd/system/marline-server.service
check 'the key and the configuration are there' has /etc/marline/identity
check 'the conffile is there' has /etc/default/marline
check 'installs again' within apt-get install -y --no-install-recommends /new.deb
check 'and finds its configuration' within grep -q '# mine' /etc/marline/server.toml
check 'purges' within apt-get purge -y marline
within find / -xdev -path /proc -prune -o -print | sort >"$folder/after"
left() {
    comm -13 "$folder/before" "$folder/after" |
        grep -v '^/run/\|^/var/\(log\|cache\|lib/dpkg\|lib/apt\)\|^/etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\|\.pwd\.lock\)' && return 1 || true
}
check 'leaves nothing behind' left
exit $failed
