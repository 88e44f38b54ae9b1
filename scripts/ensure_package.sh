#!/bin/sh
# Installs a Debian package where the user may, or says in one line what to type.
# usage: ensure_package.sh PACKAGE
set -eu

package=$1
as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo -n"
fi
if command -v apt-get >/dev/null && { [ -z "$as_root" ] || sudo -n true 2>/dev/null; }; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # dash forgets the EXIT trap when a signal ends it.
    trap 'exit 130' HUP INT TERM
    echo "Installing $package." >&2
    # A stale package list may still hold a usable package, so a failed update alone ends nothing.
    $as_root apt-get update >"$log" 2>&1 || true
    if $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$package" >>"$log" 2>&1; then
        exit 0
    fi
    echo "apt-get: $(grep '^E:' "$log" | head -n 1)" >&2
fi
echo "$package is needed; type: sudo apt-get install -y --no-install-recommends $package" >&2
exit 1
