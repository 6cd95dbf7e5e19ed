#!/usr/bin/env bash
# Checks that the library compiles for systems that it is not tested on, and the program for
# Windows: packaging/check-targets.sh. C is compiled by zig (`pip install ziglang`) and, for
# Windows, by mingw-w64.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# A compiler that says nothing of Rust's names for targets, which zig does not know.
compiler() {
    cat >"$folder/$1" <<TEXT
#!/usr/bin/env bash
words=()
for word in "\$@"; do
    case \$word in --target=*) ;; *) words+=("\$word") ;; esac
done
exec python3 -m ziglang cc -target $1 "\${words[@]}"
TEXT
    chmod +x "$folder/$1"
}
printf '#!/bin/sh\nexec python3 -m ziglang ar "$@"\n' >"$folder/ar"
chmod +x "$folder/ar"
# Nothing is linked, so musl's headers do for Android.
compiler aarch64-linux-musl
compiler aarch64-macos
export CC_aarch64_linux_android=$folder/aarch64-linux-musl AR_aarch64_linux_android=$folder/ar
export CC_aarch64_apple_darwin=$folder/aarch64-macos AR_aarch64_apple_darwin=$folder/ar
for target in aarch64-linux-android aarch64-apple-darwin x86_64-pc-windows-gnu; do
    rustup target list --installed | grep -x "$target" >/dev/null || rustup target add "$target"
    echo "== $target: the library"
    cargo check --locked --target "$target" -p marline
    echo "== $target: the program"
    cargo check --locked --target "$target" -p marline-cli --no-default-features
done
