#!/bin/sh
# Writes the digest that each image's tag has now into a Dockerfile or a compose file.
# usage: pin_images.sh FILE…
# An image without a tag is one of ours, or a stage. No file is changed unless all tags are found.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# dash forgets the EXIT trap when a signal ends it.
trap 'exit 130' HUP INT TERM

if ! command -v docker >/dev/null; then
    echo "pin_images: there is no docker; its buildx asks the registries for digests" >&2
    exit 1
fi

sed -nE 's/^(ARG [A-Z]+=|[[:space:]]+image:[[:space:]]+)([^@[:space:]]+:[^@[:space:]]+).*/\2/p' "$@" |
    sort -u >"$work/images"

while read -r image; do
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image" </dev/null)
    if ! echo "$digest" | grep -qxE 'sha256:[0-9a-f]{64}'; then
        echo "pin_images: $image has no digest: '$digest'" >&2
        exit 1
    fi
    echo "$image@$digest"
    # Not echo, to which some shells' backslashes mean something.
    name=$(printf '%s' "$image" | sed 's/[.]/\\./g')
    printf '%s\n' "s#([[:space:]=])$name(@sha256:[0-9a-f]{64})?([[:space:]]|\$)#\\1$image@$digest\\3#" \
        >>"$work/edits"
done <"$work/images"

for file in "$@"; do
    sed -E -f "$work/edits" "$file" >"$work/edited"
    cat "$work/edited" >"$file"
done
