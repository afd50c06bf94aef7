#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures build/release; arguments go to cmake. In a fresh checkout without the tests, which need more packages and take
# most of the time; what an earlier configuration said of them stays (`make test` says -DDRIFTD_TESTS=ON), as CMake removes
# the binaries of what is left out.
set -eu
cd "$(dirname "$0")/.."

[ -e build/release/CMakeCache.txt ] || set -- -DDRIFTD_TESTS=OFF "$@"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset release "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
