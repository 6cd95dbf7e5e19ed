#!/usr/bin/env bash
# Builds the container image from a static program, and runs it: packaging/test-container.sh
# [PROGRAM]. By buildah and podman where they work here; else the file system of the image that
# buildah built, or one that is put together as the Containerfile says, is run by chroot as the
# image's user. Either way: it makes its key, prints its connection string, and has neither rights
# nor a shell.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-musl/static/marline}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/context/container"/{etc,state}
install -m 755 "$program" "$folder/context/marline-linux-x86_64"

words=(server --listen 127.0.0.1:0 --allow-clients-file /etc/marline/clients)
judge() {
    grep -q marline:// "$folder/out" || { echo "error: it prints no connection string" >&2; cat "$folder/err" >&2; exit 1; }
    echo "$1: serves, $(head -c 20 "$folder/out")..."
}
built=no
storage=(--root "$folder/storage" --runroot "$folder/run" --storage-driver vfs)
by_podman() {
    buildah "${storage[@]}" bud --isolation chroot -q -t marline -f packaging/container/Containerfile "$folder/context" || return 1
    built=yes
    local podman=(podman "${storage[@]}" --cgroup-manager cgroupfs)
    local run=(run --rm --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --cgroups disabled --network none --read-only --cap-drop all --security-opt no-new-privileges -v "$folder/etc:/etc/marline")
    mkdir "$folder/etc" && chown 64433:64433 "$folder/etc"
    "${podman[@]}" "${run[@]}" marline identity new >"$folder/key" 2>"$folder/err" || return 1
    printf '%s van\n' "$(cat "$folder/key")" >"$folder/etc/clients"
    timeout 10 "${podman[@]}" "${run[@]}" marline "${words[@]}" >"$folder/out" 2>"$folder/err" || true
    ! "${podman[@]}" "${run[@]}" --entrypoint /bin/sh marline -c true 2>/dev/null || { echo "error: it has a shell" >&2; exit 1; }
    [[ $("${podman[@]}" image inspect --format '{{.Config.User}}' marline) == 64433:64433 ]] || { echo "error: it is root" >&2; exit 1; }
    judge 'by podman'
}
by_hand() {
    local root=$folder/rootfs chroot
    chroot=$(command -v chroot)
    grep -q '^FROM scratch' packaging/container/Containerfile
    grep -q '^USER 64433:64433' packaging/container/Containerfile
    if [[ $built == yes ]]; then
        root=$(buildah "${storage[@]}" mount "$(buildah "${storage[@]}" from marline)")
    else
        mkdir -p "$root/etc" "$root/var/lib"
        install -m 755 "$program" "$root/marline"
        install -d -m 700 -o 64433 -g 64433 "$root/etc/marline" "$root/var/lib/marline"
    fi
    local variables
    variables=$(sed -n 's/^ENV //p' packaging/container/Containerfile)
    env -i $variables "$chroot" --userspec=64433:64433 --groups= "$root" /marline identity new >"$folder/key" 2>"$folder/err"
    printf '%s van\n' "$(cat "$folder/key")" >"$root/etc/marline/clients"
    timeout 5 env -i $variables "$chroot" --userspec=64433:64433 --groups= "$root" /marline "${words[@]}" \
        >"$folder/out" 2>"$folder/err" || true
    [[ -S $root/var/lib/marline/server.sock || -s $folder/out ]]
    judge "by chroot, built by buildah: $built"
}
[[ $(id -u) == 0 ]] || { echo "SKIPPED: containers are tested by root" >&2; exit 0; }
if command -v buildah >/dev/null && command -v podman >/dev/null && by_podman; then exit 0; fi
echo "buildah and podman do not work here: $(tail -1 "$folder/err" 2>/dev/null)"
by_hand
