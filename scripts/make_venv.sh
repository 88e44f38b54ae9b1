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
installer=
# dash forgets the EXIT trap when a signal ends it; a process in the background ignores Ctrl-C.
trap '[ -z "$installer" ] || kill "$installer"; exit 130' HUP INT TERM

note() {
    [ ! -t 2 ] || printf '\r\033[K%s' "$1" >&2
}

# Runs an installer; ends with its first error, in one line, when it fails.
run() {
    "$@" >"$work/said" 2>&1 &
    installer=$!
    seconds=0
    while kill -0 "$installer" 2>/dev/null; do
        note "  $seconds s"
        sleep 1
        seconds=$((seconds + 1))
    done
    note ""
    wait "$installer" && installer= && return
    sed -n 's/^ *\(ERROR: \|error: \|× \|├─▶ \|╰─▶ \|Caused by: \|cause: \)/: /p' "$work/said" |
        head -n 8 | tr -d '\n' | sed 's/^: //' >&2
    echo >&2
    exit 1
}

# uv reads no configuration of pip's: a mirror of PyPI, and the certificates that it is trusted by.
configured() {
    sed -n "s/^\(global\|install\|:env:\)\.$1='\(.*\)'\$/\2/p" "$work/pip" | tail -n 1
}

packages=$(grep -c '^[a-z].*==' requirements.lock)
echo "Installing $packages pinned packages into $venv (PySpark is the largest, about 400 MB)." >&2
"$python" -m venv "$venv"
awk '/^[a-z]/ { uv = /^uv==/ } uv' requirements.lock >"$work/uv.lock"
run "$venv/bin/python" -m pip --disable-pip-version-check install --require-hashes -r "$work/uv.lock"
"$venv/bin/python" -m pip config list >"$work/pip"
: "${UV_DEFAULT_INDEX=$(configured index-url)}" "${UV_INDEX=$(configured extra-index-url)}"
: "${SSL_CERT_FILE=$(configured cert)}"
for name in UV_DEFAULT_INDEX UV_INDEX SSL_CERT_FILE; do
    eval "[ -z \"\$$name\" ] || export $name"
done
export UV_INDEX_STRATEGY=unsafe-best-match  # pip's; every hash is in the lock
uv() {
    run "$venv/bin/uv" pip install --python "$venv/bin/python" --no-config "$@"
}
uv --require-hashes -r requirements.lock
uv --no-deps --no-build-isolation --editable .
echo "Installed: $venv/bin/caughtup" >&2
