#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make test`: every test, in a temporary folder of this run that is gone afterwards. Does not begin where the disk has no
# room, and fails where a passed test left a folder behind: a disk fills with those. JOBS at once; arguments go to ctest.
set -eu
cd "$(dirname "$0")/.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
mkdir -p "$cache"

room() {  # folder, GiB, of what, where else
  have=$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1048576) }')
  [ "$have" -lt "$2" ] || return 0
  echo "make test: $1 has $have GiB free, and $3 take $2 GiB: make room, or set $4 to a folder on another disk" >&2
  exit 1
}
servers=3
ls "$cache"/kube-*/helm "$cache"/tofu-*/tofu >/dev/null 2>&1 || servers=8
room "$cache" "$servers" "the servers of the tests (and, once, their modules and objects)" XDG_CACHE_HOME
room "${TMPDIR:-/tmp}" 3 "the folders of the tests" TMPDIR

TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/driftd-run-XXXXXX")
export TMPDIR
ulimit -S -c 0  # a server that aborts leaves no gigabytes
chmod 711 "$TMPDIR"  # servers that refuse root run as users of their own
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
ctest --test-dir build/release --output-on-failure -j "${JOBS:-$(nproc)}" --no-tests=error "$@"
left=$(cd "$TMPDIR" && ls -d driftd-test-* 2>/dev/null) || exit 0
echo "make test: every test passed, but these folders were left in $TMPDIR:" >&2
for folder in $left; do
  echo "  $folder: $(du -sh "$TMPDIR/$folder" | cut -f1), $(cd "$TMPDIR/$folder" && echo *)" >&2
done
exit 1
