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
[ ! -x "$home/tofu" ] || { echo "$home/tofu"; exit 0; }

mkdir -p "$cache"
exec 9>"$home.lock"
flock 9
[ ! -x "$home/tofu" ] || { echo "$home/tofu"; exit 0; }
for left in "$home"-new-*; do  # of a build that was killed
  [ ! -d "$left" ] || { chmod -R u+w "$left"; rm -rf "$left"; }
done
have=$(df -Pk "$cache" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "$have" -ge 4 ] || { echo "tofu/build.sh: $cache has $have GiB free, this build takes 4: make room, or set XDG_CACHE_HOME" >&2; exit 1; }
fresh=$(mktemp -d "$home-new-XXXXXX")
trap 'chmod -R u+w "$fresh"; rm -rf "$fresh"' EXIT
cd "$fresh"
mkdir work
export GOMODCACHE="$fresh/modules" GOCACHE="$fresh/objects" GOTMPDIR="$fresh/work"  # gigabytes, of no use afterwards
thrice() { "$@" || "$@" || "$@"; }  # modules come over the network
source=$(thrice go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
want=$(sed -n 's/^go //p' "$source/go.mod")

# A Go that is older than OpenTofu wants (Debian's) fetches the right one, which is a module itself.
go=go
have=$(go env GOVERSION | sed 's/^go//')
if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n1)" != "$want" ]; then
  system="$(go env GOOS)-$(go env GOARCH)"
  tool="$GOMODCACHE/golang.org/toolchain@v0.0.1-go$want.$system"
  GOFLAGS=-modcacherw GO111MODULE=on go mod download "golang.org/toolchain@v0.0.1-go$want.$system" >&2
  find "$tool/bin" "$tool/pkg/tool" -type f -exec chmod u+x {} +
  go="$tool/bin/go"
fi

{
  printf 'module tofu\n\ngo %s\n\nrequire %s %s\n\n' "$want" "$module" "$version"
  sed -n '/^replace (/,/^)/p; /^replace [^(]/p' "$source/go.mod"
} >go.mod
cp "$source/go.sum" .
chmod u+w go.sum
export GOTOOLCHAIN=local CGO_ENABLED=0
thrice nice "$go" build -mod=mod -p 2 -ldflags "-s -w -X $module/version.dev=no" -o tofu "$module/cmd/tofu" >&2
mkdir -p "$home"
mv tofu "$home/tofu"
echo "$home/tofu"
