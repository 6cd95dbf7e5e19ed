#!/usr/bin/env bash
# A clean Debian for tests, as a folder: packaging/debian-root.sh DIR. Made by debootstrap once;
# what is there already is kept. Has what a server of Debian's has and the tests need: systemd,
# iproute2, nftables, curl, ping.
set -euo pipefail
folder=$1
[[ ! -e $folder/complete ]] || exit 0
[[ $(id -u) == 0 ]] || { echo "SKIPPED: debootstrap needs root" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "SKIPPED: debootstrap is not installed" >&2; exit 3; }
include=systemd,systemd-sysv,dbus,iproute2,nftables,iputils-ping,curl,ca-certificates,init-system-helpers
rm -rf "$folder"
debootstrap --variant=minbase --include=$include "${SUITE:-bookworm}" "$folder" "${MIRROR:-http://deb.debian.org/debian}" \
    >"$folder.log" 2>&1 || { tail -3 "$folder.log" >&2; echo "SKIPPED: debootstrap failed" >&2; exit 3; }
touch "$folder/complete"
