#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folder that holds an OpenTelemetry Collector (main.go), built once from Go modules into the user's cache
# (about ten minutes on two cores). The folder is keyed by what they are built from. Two may run at once: the second
# waits for the first.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
want=$(sed -n 's/^go //p' "$here/go.mod")
key=$(cd "$here" && cat build.sh go.mod go.sum main.go | sha256sum | cut -c1-16)
out="$cache/collector-$key"
[ ! -x "$out/collector" ] || { echo "$out"; exit 0; }

mkdir -p "$cache"
exec 9>"$out.lock"
flock 9
[ ! -x "$out/collector" ] || { echo "$out"; exit 0; }
rm -rf "$cache/collector-new-$key"-*  # of a build that was killed
have=$(df -Pk "$cache" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "$have" -ge 4 ] || { echo "collector/build.sh: $cache has $have GiB free, this build takes 4: make room, or set XDG_CACHE_HOME" >&2; exit 1; }

fresh=$(mktemp -d "$cache/collector-new-$key-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
mkdir "$fresh/work"
export GOMODCACHE="$fresh/modules" GOCACHE="$fresh/objects" GOTMPDIR="$fresh/work"  # of no use afterwards
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -modcacherw -trimpath -buildvcs=false" GOWORK=off
thrice() { "$@" || "$@" || "$@"; }  # modules come over the network

# A Go that is older than the modules want (Debian's) fetches the right one, which is a module itself.
go=go
have=$(go env GOVERSION | sed 's/^go//')
if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n1)" != "$want" ]; then
  tool="$GOMODCACHE/golang.org/toolchain@v0.0.1-go$want.$(go env GOOS)-$(go env GOARCH)"
  (cd "$fresh" && GOFLAGS=-modcacherw GO111MODULE=on thrice go mod download "golang.org/${tool##*/}") >&2
  find "$tool/bin" "$tool/pkg/tool" -type f -exec chmod u+x {} +
  go="$tool/bin/go"
fi
export GOTOOLCHAIN=local
(cd "$here" && thrice nice "$go" build -ldflags "-s -w" -o "$fresh/collector" .) >&2
rm -rf "$out" "$GOMODCACHE" "$GOCACHE" "$GOTMPDIR"
mv -T "$fresh" "$out"
echo "$out"
