#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Kafka provider of this tree with the librdkafka of librdkafka.sh, as BUILD/tests/newer/kafka.so: compiler $1,
# build folder $2. Quiet when that is newer than its sources.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../../.." && pwd)
library=$("$here/librdkafka.sh")
out="$2/tests/newer"
mkdir -p "$out"
[ ! -e "$out/kafka.so" ] || [ -n "$(find "$tree/plugins/kafka" "$tree/plugins/net" "$tree/plugins/common" "$tree/plugin-api/include" -newer "$out/kafka.so" -type f | head -n 1)" ] || exit 0
fresh=$(mktemp -d "$out/new-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
for source in "$tree"/plugins/kafka/*.cpp "$tree"/plugins/net/*.cpp "$tree"/plugins/common/*.cpp; do
  echo "$source"
done | xargs -P 2 -I{} sh -c 'exec "$1" -std=c++20 -O0 -fPIC -fvisibility=hidden -Wall -Wextra -Werror \
  -Wno-missing-field-initializers -isystem "$2/include" -I"$3/plugins" -I"$3/plugin-api/include" -I"$4/plugins/kafka/embed" \
  -c "$5" -o "$6/$(basename "$5").o"' sh "$1" "$library" "$tree" "$2" {} "$fresh"
"$1" -shared -o "$fresh/kafka.so" "$fresh"/*.o "$library/lib/librdkafka.a" -lssl -lcrypto -lz -lpthread -ldl -lm \
  -Wl,--version-script="$tree/cmake/provider.map" -Wl,--no-undefined -Wl,--exclude-libs,ALL -Wl,-z,relro,-z,now
mv "$fresh/kafka.so" "$out/kafka.so"
