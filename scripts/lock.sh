#!/bin/sh
# Resolves requirements.lock again, and the parts of it that the images install.
# usage: lock.sh PYTHON [--upgrade]
set -eu

python=$1
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# dash forgets the EXIT trap when a signal ends it.
trap 'exit 130' HUP INT TERM

"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip --disable-pip-version-check install --quiet uv

compile() {
    "$work/venv/bin/python" -m uv pip compile --quiet --generate-hashes --no-emit-index-url \
        --no-annotate --no-header --python-version 3.11 "$@"
}

# Not the extras msk, for which the tests have a stand-in, and kerberos, which is built with Debian's
# headers.
compile pyproject.toml --extra history --extra spark --extra top --extra mcp --extra otlp \
    --extra pkcs12 --group demo --group dev -o requirements.lock "$@"
# Of the same versions, what each image needs to run; and what makes wheels while it is built.
compile pyproject.toml --extra otlp -c requirements.lock -o requirements-service.lock
compile pyproject.toml --extra otlp --extra spark -c requirements.lock -o requirements-history.lock
compile --group build -o requirements-build.lock "$@"
