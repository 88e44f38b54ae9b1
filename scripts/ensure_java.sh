#!/bin/sh
# Makes sure that a Java 17 or newer is there: says where, or installs one, or says what to type.
# usage: ensure_java.sh [DIRECTORY OF INSTALLED JAVAS]
set -eu

package=openjdk-17-jre-headless
installed=${1:-/usr/lib/jvm}

feature_release() {
    # Without the option, every Java leaves a directory in /tmp.
    "$1" -XX:-UsePerfData -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

find_java() {
    for java in "${JAVA_HOME:-/nonexistent}/bin/java" "$(command -v java || true)" \
        "$installed"/*/bin/java; do
        [ -x "$java" ] || continue
        release=$(feature_release "$java")
        if [ "${release:-0}" -ge 17 ]; then
            echo "$java"
            return 0
        fi
    done
    return 1
}

if find_java; then
    exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo -n"
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# dash forgets the EXIT trap when a signal ends it.
trap 'exit 130' HUP INT TERM
if command -v apt-get >/dev/null && { [ -z "$as_root" ] || sudo -n true 2>/dev/null; }; then
    echo "Installing $package (Kafka and Spark need Java 17)." >&2
    # A stale package list may still hold a usable package, so a failed update alone ends nothing.
    $as_root apt-get update >"$log" 2>&1 || true
    if $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$package" >>"$log" 2>&1 && find_java; then
        exit 0
    fi
    echo "apt-get: $(grep '^E:' "$log" | head -n 1)" >&2
fi
echo "Java 17 or newer is needed; type: sudo apt-get install -y --no-install-recommends $package" >&2
exit 1
