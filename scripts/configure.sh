#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures build/release. Arguments go to cmake. A fresh checkout is configured without the tests: they need more packages,
# and most of the time of a build. `make test` passes -DDRIFTD_TESTS=ON, which then stays: CMake removes the binaries of targets
# that a later configuration leaves out.
set -eu
cd "$(dirname "$0")/.."

[ -e build/release/CMakeCache.txt ] || set -- -DDRIFTD_TESTS=OFF "$@"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset release "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
