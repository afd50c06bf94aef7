#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `deps.sh build|demo|test [PACKAGE…]` installs the Debian 12 packages that are missing to build driftd, to run the demo, or to
# run the tests, and each PACKAGE. `demo` includes `build`, `test` includes both. Distribution packages only. Prints nothing
# if nothing is missing. Needs root or sudo.
set -eu

packages="cmake ninja-build g++ ccache mold make pkg-config python3
libboost1.81-dev libprotobuf-dev protobuf-compiler libcurl4-openssl-dev libyaml-cpp-dev libnats-dev libspdlog-dev
libfmt-dev libsqlite3-dev libhiredis-dev libpq-dev libsimdjson-dev nlohmann-json3-dev libxxhash-dev libexpected-dev
libgrpc++-dev protobuf-compiler-grpc libcli11-dev libcpp-httplib-dev prometheus-cpp-dev libssl-dev libsystemd-dev libseccomp-dev libcjson-dev librdkafka-dev zlib1g-dev libzstd-dev
libpugixml-dev libutf8proc-dev libdtl-dev libidn2-dev file dpkg-dev"
demo="redis-server redis-tools postgresql postgresql-client nats-server"
test="git clang-format-16 codespell universal-ctags python3-venv libgtest-dev libgmock-dev prometheus abigail-tools maven
openjdk-17-jdk-headless faketime openssl debootstrap curl ca-certificates rsyslog rsyslog-openssl iproute2 libnss-wrapper"
# The example providers in Rust and Go; any toolchain on PATH that is not older than Debian's will do.
command -v cargo >/dev/null && command -v rustc >/dev/null || test="$test cargo rustc"
command -v go >/dev/null || test="$test golang-go"

purpose="${1:-}"
case "$purpose" in
  build) ;;
  demo) packages="$packages $demo" ;;
  test) packages="$packages $demo $test" ;;
  *)
    echo "usage: scripts/deps.sh build|demo|test [PACKAGE...]" >&2
    exit 2
    ;;
esac
shift
packages="$packages $*"

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  as_root="sudo"
  command -v sudo >/dev/null || { echo "deps.sh: run this as root, or install sudo; missing:$missing" >&2; exit 1; }
fi
echo "installing:$missing"
# The servers are for tests and the demo, which start their own; none of the distribution's units shall start.
policy=/usr/sbin/policy-rc.d
made_policy=""
if [ ! -e "$policy" ] && [ ! -d /run/systemd/system ]; then
  printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
  $as_root chmod +x "$policy"
  made_policy=1
fi
log=$(mktemp)
if ! { $as_root apt-get update -q && $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends $missing; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "deps.sh: apt-get failed, see above" >&2
  [ -z "$made_policy" ] || $as_root rm -f "$policy"
  exit 1
fi
rm -f "$log"
[ -z "$made_policy" ] || $as_root rm -f "$policy"
