#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzzer of build/fuzz/bin (or those named) for FUZZ_SECONDS on its corpus. What it finds is written to
# build/fuzz/found/NAME-…: put that file into tests/fuzz/corpus/NAME once the crash is fixed.
set -eu
cd "$(dirname "$0")/.."
seconds="${FUZZ_SECONDS:-60}"
[ $# -gt 0 ] || set -- $(cd tests/fuzz/corpus && ls)
mkdir -p build/fuzz/found
failed=
for name in "$@"; do
  mkdir -p "build/fuzz/corpus/$name"
  echo "fuzz $name, $seconds s"
  build/fuzz/bin/fuzz_"$name" -max_total_time="$seconds" -max_len=16384 -timeout=20 -rss_limit_mb=1024 \
    -artifact_prefix="build/fuzz/found/$name-" -print_final_stats=1 \
    "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" > "build/fuzz/$name.log" 2>&1 || failed="$failed $name"
  grep -E 'stat::number_of_executed_units|SUMMARY|broken promise' "build/fuzz/$name.log" || true
done
[ -z "$failed" ] || { echo "found something:$failed (build/fuzz/NAME.log, build/fuzz/found)"; exit 1; }
