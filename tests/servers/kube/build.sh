#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folder that holds kube-apiserver, kube-controller-manager, etcd, helm and informer, built once from Go modules into the user's cache
# (about five minutes on two cores). The folder is keyed by what they are built from. Two may run at once: the second
# waits for the first.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
want=$(sed -n 's/^go //p' "$here/go.mod")
key=$(cd "$here" && cat build.sh go.mod go.sum helm/go.mod helm/go.sum ./*/main.go | sha256sum | cut -c1-16)
out="$cache/kube-$key"
[ ! -x "$out/helm" ] || { echo "$out"; exit 0; }

mkdir -p "$cache"
exec 9>"$cache/kube-$key.lock"
flock 9
[ ! -x "$out/helm" ] || { echo "$out"; exit 0; }
rm -rf "$cache/kube-new-$key"-*  # of a build that was killed
have=$(df -Pk "$cache" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "$have" -ge 6 ] || { echo "kube/build.sh: $cache has $have GiB free, this build takes 6: make room, or set XDG_CACHE_HOME" >&2; exit 1; }

# A Go that is older than the modules want (Debian's) fetches the right one, which is a module itself.
go=go
have=$(go env GOVERSION | sed 's/^go//')
if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n1)" != "$want" ]; then
  system="$(go env GOOS)-$(go env GOARCH)"
  toolchain="$cache/go-$want-$system"
  if [ ! -x "$toolchain/bin/go" ]; then
    fresh=$(mktemp -d "$cache/go-new-XXXXXX")
    GOPATH="$fresh/path" GOFLAGS=-modcacherw GO111MODULE=on go mod download "golang.org/toolchain@v0.0.1-go$want.$system" >&2
    root="$fresh/path/pkg/mod/golang.org/toolchain@v0.0.1-go$want.$system"
    chmod -R u+w "$root"
    find "$root/bin" "$root/pkg/tool" -type f -exec chmod u+x {} +
    mv -T "$root" "$toolchain"
    rm -rf "$fresh"
  fi
  go="$toolchain/bin/go"
fi

fresh=$(mktemp -d "$cache/kube-new-$key-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS="-mod=readonly -modcacherw -trimpath -buildvcs=false" GOWORK=off
mkdir "$fresh/work"
export GOMODCACHE="$fresh/modules" GOCACHE="$fresh/objects" GOTMPDIR="$fresh/work"  # gigabytes, of no use afterwards
version=$(sed -n 's/^\tk8s.io\/kubernetes v//p' "$here/go.mod")
stamp=k8s.io/component-base/version
thrice() { "$@" || "$@" || "$@"; }  # modules come over the network
flags="-s -w -X $stamp.gitVersion=v$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$(echo "$version" | cut -d. -f2)"
(cd "$here" && thrice nice "$go" build -ldflags "$flags" -o "$fresh/kube-apiserver" ./apiserver) >&2
(cd "$here" && thrice nice "$go" build -ldflags "$flags" -o "$fresh/kube-controller-manager" ./controllermanager) >&2
(cd "$here" && thrice nice "$go" build -ldflags "-s -w" -o "$fresh/etcd" ./etcd) >&2
(cd "$here" && thrice nice "$go" build -ldflags "-s -w" -o "$fresh/informer" ./informer) >&2
(cd "$here/helm" && thrice nice "$go" build -ldflags "-s -w" -o "$fresh/helm" helm.sh/helm/v3/cmd/helm) >&2
rm -rf "$out" "$GOMODCACHE" "$GOCACHE" "$GOTMPDIR"
mv -T "$fresh" "$out"
echo "$out"
