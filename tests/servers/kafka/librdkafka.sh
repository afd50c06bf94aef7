#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folder of a librdkafka that is newer than Debian's: include/librdkafka/rdkafka.h and lib/librdkafka.a, built
# from the C sources that the crate rdkafka-sys carries. For tests alone. Made once under the user's cache folder, keyed
# by this script; two may run at once: each makes its own and the first rename wins. Needs cargo, cc, make, python3.
set -eu
crate="rdkafka-sys"
version="4.9.0" # holds librdkafka 2.10.0
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
folder="$cache/librdkafka-$version-$(sha256sum "$0" | cut -c1-12)"
if [ ! -d "$folder" ]; then
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/librdkafka-new-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  mkdir "$fresh/crate"
  printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\n%s = "=%s"\n' \
    "$crate" "$version" >"$fresh/crate/Cargo.toml"
  : >"$fresh/crate/lib.rs"
  {
    cd "$fresh/crate"
    cargo vendor -q vendor
    cd "vendor/$crate/librdkafka"
    CFLAGS="-O1 -fPIC" ./configure --prefix="$fresh/out" --disable-gssapi --disable-curl --disable-zstd --disable-lz4-ext
    make -s -j2 -C src librdkafka.a
    mkdir -p "$fresh/out/include/librdkafka" "$fresh/out/lib"
    cp src/rdkafka.h src/rdkafka_mock.h "$fresh/out/include/librdkafka"
    cp src/librdkafka.a "$fresh/out/lib"
  } >"$fresh/log" 2>&1 || { tail -n 30 "$fresh/log" >&2; exit 1; }
  chmod 755 "$fresh/out"
  mv -T "$fresh/out" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
echo "$folder"
