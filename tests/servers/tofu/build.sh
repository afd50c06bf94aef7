#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the path of an OpenTofu that is built once, as a Go module, into the user's cache folder. OpenTofu replaces
# a module of its own, which `go install` refuses: so a module of ours requires it and takes over what it replaces.
# Two may run this at once: one builds, the other waits for it. About four minutes the first time.
set -eu
version=v1.10.6
module=github.com/opentofu/opentofu
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
home="$cache/tofu-$version-$(sha256sum "$0" | cut -c1-16)"
if [ ! -x "$home/tofu" ]; then
  mkdir -p "$cache"
  exec 9>"$home.lock"
  flock 9
  if [ ! -x "$home/tofu" ]; then
    fresh=$(mktemp -d "$cache/tofu-new-XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    cd "$fresh"
    source=$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    {
      printf 'module tofu\n\nrequire %s %s\n\n' "$module" "$version"
      sed -n '/^replace (/,/^)/p; /^replace [^(]/p' "$source/go.mod"
      sed -n '/^go [0-9]/p' "$source/go.mod"
    } >go.mod
    cp "$source/go.sum" .
    chmod u+w go.sum
    CGO_ENABLED=0 nice go build -mod=mod -p 2 -ldflags "-s -w -X $module/version.dev=no" -o tofu "$module/cmd/tofu" >&2
    mkdir -p "$home"
    mv tofu "$home/tofu"
  fi
fi
echo "$home/tofu"
