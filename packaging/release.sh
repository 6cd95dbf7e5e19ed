#!/usr/bin/env bash
# Makes all of a release into dist/, from a clean checkout: packaging/release.sh. See
# docs/RELEASING.md.
#
#   marline-linux-{x86_64,aarch64,armv7}        static programs
#   marline-small-linux-{aarch64,armv7}         the same without the simulator, for routers
#   marline_VERSION_{amd64,arm64,armhf}.deb     Debian packages
#   marline-openwrt-VERSION.tar.gz              the OpenWrt package's folder
#   marline-container-VERSION.tar.gz            Containerfile, compose file and what they copy
#   marline-VERSION.cdx.json                    the bill of materials (CycloneDX)
#   SHA256SUMS
#
# Needs ziglang and cargo-zigbuild (pip), cargo-deb and cargo-cyclonedx (cargo install).
# ONLY='x86_64' builds for some. Everything in it is the same for the same commit, compilers and
# tools.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
out=${CARGO_TARGET_DIR:-target}
for program in cargo-zigbuild cargo-deb cargo-cyclonedx; do
    command -v $program >/dev/null || { echo "error: there is no $program: docs/RELEASING.md" >&2; exit 1; }
done
if [[ -n $(git status --porcelain) ]]; then
    echo "warning: what is not committed is in this release" >&2
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
declare -A target=([x86_64]=x86_64-unknown-linux-musl [aarch64]=aarch64-unknown-linux-musl [armv7]=armv7-unknown-linux-musleabihf)
read -ra kinds <<<"${ONLY:-x86_64 aarch64 armv7}"
rm -rf dist
mkdir dist

for kind in "${kinds[@]}"; do
    [[ ${BUILD:-yes} == no ]] || packaging/static.sh "${target[$kind]}"
    install -m 755 "$out/${target[$kind]}/static/marline" "dist/marline-linux-$kind"
    if [[ $kind != x86_64 ]]; then
        [[ ${BUILD:-yes} == no ]] || SMALL=yes packaging/static.sh "${target[$kind]}"
        [[ ! -f $out/${target[$kind]}/small/marline ]] ||
            install -m 755 "$out/${target[$kind]}/small/marline" "dist/marline-small-linux-$kind"
    fi
    BUILD=no packaging/deb.sh "${target[$kind]}"
done

# Archives whose bytes depend on nothing but what is in them.
archive() {
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -c "${@:2}" | gzip -n >"dist/$1"
}
archive "marline-openwrt-$version.tar.gz" -C packaging openwrt
archive "marline-container-$version.tar.gz" -C packaging container
cargo cyclonedx --quiet --format json --manifest-path crates/marline-cli/Cargo.toml --override-filename "marline-$version.cdx"
# Where the source lies is nobody's concern, and differs.
sed "s#file://$PWD#file:///marline#g" "crates/marline-cli/marline-$version.cdx.json" >"dist/marline-$version.cdx.json"
find crates examples lab -name "marline-$version.cdx.json" -delete
(cd dist && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
(cd dist && sha256sum --quiet -c SHA256SUMS && ls -l)
