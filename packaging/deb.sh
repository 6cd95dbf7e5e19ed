#!/usr/bin/env bash
# Builds a Debian package in dist/: packaging/deb.sh [TARGET]. For this host without a target; for
# another, such as aarch64-unknown-linux-musl, from the static program that packaging/static.sh has
# built. PROFILE=release builds without the minutes that optimization across crates takes, for
# tests. DEB_VERSION sets the package's version. Needs cargo-deb (`cargo install cargo-deb`).
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-} profile=${PROFILE:-dist}
out=${CARGO_TARGET_DIR:-target}
command -v cargo-deb >/dev/null || { echo "error: there is no cargo-deb: cargo install cargo-deb" >&2; exit 1; }

# The pages come from a program that runs here.
here=$out/$profile/marline
if [[ -z $target || ! -x $out/x86_64-unknown-linux-musl/static/marline ]]; then
    [[ ${BUILD:-yes} == no ]] || cargo build --profile "$profile" --locked -p marline-cli
else
    here=$out/x86_64-unknown-linux-musl/static/marline
fi
generated=packaging/generated
rm -rf "$generated"
"$here" generate man "$generated/man"
"$here" generate completions "$generated/completions"
# What the version has new is in CHANGELOG.md, which the package has, too.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
printf 'marline (%s) stable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- The Marline authors <marline@localhost>  %s\n' \
    "${DEB_VERSION:-$version-1}" "$(date -Ru -d "@$(git log -1 --format=%ct)")" >"$generated/changelog"

mkdir -p dist
words=(--no-build --no-strip --locked -p marline-cli --output dist/)
if [[ -n $target ]]; then words+=(--profile static --target "$target"); else words+=(--profile "$profile"); fi
[[ -z ${DEB_VERSION:-} ]] || words+=(--deb-version "$DEB_VERSION")
cargo deb "${words[@]}"
