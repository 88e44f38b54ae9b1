#!/bin/sh
# Creates the virtual environment from the lock file and installs caughtup into it, editable.
# usage: make_venv.sh PYTHON DIRECTORY
set -eu

python=$1
venv=$2

if ! command -v "$python" >/dev/null; then
    echo "Python 3.11 or newer is needed; type: sudo apt-get install -y python3 python3-venv" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Python 3.11 or newer is needed, and $python is older; set PYTHON=…" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian keeps venv in a package of its own.
    sh "$(dirname "$0")/ensure_package.sh" python3-venv
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# dash forgets the EXIT trap when a signal ends it.
trap 'exit 130' HUP INT TERM

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check --no-color install "$@" \
        2>"$work/errors" || touch "$work/failed"
}

note() {
    [ ! -t 2 ] || printf '\r\033[K%s' "$1" >&2
}

# What pip says of its progress is some 300 lines: one is enough.
show_progress() {
    seen=0
    while read -r word package _; do
        case $word in
            Collecting) seen=$((seen + 1)) && note "  $seen of $packages: $package" ;;
            Installing) note "  unpacking" ;;
        esac
    done
    note ""
}

end_if_failed() {
    [ -e "$work/failed" ] || return 0
    echo "pip: $(grep '^ERROR: ' "$work/errors" | head -n 1)" >&2
    exit 1
}

packages=$(grep -c '^[a-z].*==' requirements.lock)
echo "Installing $packages pinned packages into $venv (PySpark is the largest, about 400 MB)." >&2
"$python" -m venv "$venv"
# Python compiles what is imported when it is: that is a small part, and the rest takes 15 seconds.
pip --no-compile --progress-bar off --require-hashes -r requirements.lock | show_progress
end_if_failed
pip --quiet --no-deps --no-build-isolation --editable .
end_if_failed
echo "Installed: $venv/bin/caughtup" >&2
