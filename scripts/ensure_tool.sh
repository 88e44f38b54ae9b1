#!/bin/sh
# Makes sure that a command is there, from its Debian package if need be.
# usage: ensure_tool.sh COMMAND PACKAGE
set -eu
command -v "$1" >/dev/null || exec sh "$(dirname "$0")/ensure_package.sh" "$2"
