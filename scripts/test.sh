#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make test`, `make test-asan`, `make test-tsan`: the tests of the build PRESET (release), in a temporary folder of this run
# that is gone afterwards. Does not start if the disk has no room. Fails if a test left a folder behind, because such
# folders fill the disk, and if a sanitizer reported something in any process. JOBS tests run at once; arguments go to ctest.
# Ends with what the failed tests said.
set -eu
cd "$(dirname "$0")/.."

preset="${PRESET:-release}"
what="make test"
[ "$preset" = release ] || what="make test-$preset"

temporary="${TMPDIR:-/tmp}"
have=$(df -Pk "$temporary" | awk 'NR == 2 { print int($4 / 1048576) }')
if [ "$have" -lt 3 ]; then
  echo "$what: $temporary has $have GiB free, and the tests take 3: make room, or set TMPDIR to a folder on another disk" >&2
  exit 1
fi

TMPDIR=$(mktemp -d "$temporary/driftd-run-XXXXXX")
export TMPDIR
ulimit -S -c 0  # a server that aborts leaves no gigabytes
chmod 711 "$TMPDIR"  # servers that refuse root run as users of their own
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A process that a test ends by force or does not look at tells what was found in it, too. A worker has no environment: its
# report stands in the log of its agent, and ctest looks there.
if [ "$preset" != release ]; then
  reports="log_path=$TMPDIR/report"
  export ASAN_OPTIONS="$reports${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
  export UBSAN_OPTIONS="$reports${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
  export TSAN_OPTIONS="$reports:die_after_fork=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}"  # an agent that a test ends is a fork of the test
fi

failed=0
ctest --test-dir "build/$preset" --output-on-failure -j "${JOBS:-$(nproc)}" --no-tests=error \
  --test-output-truncation middle --output-junit "$TMPDIR/tests.xml" "$@" || failed=$?
[ ! -e "$TMPDIR/tests.xml" ] || python3 scripts/slow_tests.py "$TMPDIR/tests.xml" docs/testing.md
for report in "$TMPDIR"/report.*; do
  [ -e "$report" ] || continue
  echo "$what: found by a sanitizer:" >&2
  cat "$report" >&2
  [ "$failed" -ne 0 ] || failed=1
done
[ ! -e "$TMPDIR/tests.xml" ] || python3 scripts/failed_tests.py "$TMPDIR/tests.xml"
[ "$failed" -eq 0 ] || exit "$failed"
left=$(cd "$TMPDIR" && ls -d driftd-test-* 2>/dev/null) || exit 0
echo "$what: every test passed, but these folders were left in $TMPDIR:" >&2
for folder in $left; do
  echo "  $folder: $(du -sh "$TMPDIR/$folder" | cut -f1), $(cd "$TMPDIR/$folder" && echo *)" >&2
done
exit 1
