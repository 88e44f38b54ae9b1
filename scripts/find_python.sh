#!/bin/sh
# Prints which Python to use: the system's where it is new enough, since distributions build theirs
# with profile-guided optimization (what pyenv builds by default takes a seventh longer) and mend it;
# otherwise the one that the PATH has.
# usage: find_python.sh
set -eu

system=/usr/bin/python3
if [ -x "$system" ] && "$system" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    # Debian keeps venv in a package of its own.
    if "$system" -c 'import ensurepip, venv' 2>/dev/null ||
        sh "$(dirname "$0")/ensure_package.sh" python3-venv 2>/dev/null; then
        echo "$system"
        exit 0
    fi
fi
echo python3
