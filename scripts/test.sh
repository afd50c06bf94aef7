#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make test`: every test, in a temporary folder of this run that is gone afterwards. Does not begin where the disk has no
# room, and fails where a passed test left a folder behind: a disk fills with those. JOBS at once; arguments go to ctest.
set -eu
cd "$(dirname "$0")/.."

temporary="${TMPDIR:-/tmp}"
have=$(df -Pk "$temporary" | awk 'NR == 2 { print int($4 / 1048576) }')
if [ "$have" -lt 3 ]; then
  echo "make test: $temporary has $have GiB free, and the tests take 3: make room, or set TMPDIR to a folder on another disk" >&2
  exit 1
fi

TMPDIR=$(mktemp -d "$temporary/driftd-run-XXXXXX")
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
