#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folder that holds the CustomResourceDefinitions of the Gateway API's standard channel, taken once from its
# Go module into the user's cache. The module is checked against go.sum. Two may run at once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
module=sigs.k8s.io/gateway-api
version=$(sed -n "s|^require $module ||p" "$here/go.mod")
out="$cache/gateway-api-$version"
[ ! -d "$out" ] || { echo "$out"; exit 0; }

"$here/../build.sh" > /dev/null  # it also fetches a Go where that of the system is too old
toolchain="$cache/go-$(sed -n 's/^go //p' "$here/../go.mod")-$(go env GOOS)-$(go env GOARCH)"
go=go
[ ! -x "$toolchain/bin/go" ] || go="$toolchain/bin/go"
fresh=$(mktemp -d "$cache/gateway-api-new-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
export GOMODCACHE="$fresh/modules" GOFLAGS="-mod=readonly -modcacherw" GOTOOLCHAIN=local GOWORK=off
load() { (cd "$here" && "$go" mod download "$module@$version") >&2; }
load || load || load  # it comes over the network
mv "$fresh/modules/$module@$version/config/crd/standard" "$fresh/crds"
mv -T "$fresh/crds" "$out" 2>/dev/null || [ -d "$out" ]  # another one may have been faster
echo "$out"
