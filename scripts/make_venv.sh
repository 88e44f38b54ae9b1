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
echo "Installing the pinned packages into $venv (PySpark is the largest, about 400 MB)." >&2
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --progress-bar on --require-hashes -r requirements.lock
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation --editable .
echo "Installed: $venv/bin/caughtup" >&2
