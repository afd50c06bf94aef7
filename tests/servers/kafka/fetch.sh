#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folder that holds Apache Kafka VERSION ($1) as jars in lib/, and the tool server of Tools.java compiled
# against it. Made once under the user's cache folder, keyed by version and by what stands beside this script. Two may
# run at once: each makes its own and the first rename wins. Needs mvn and javac.
set -eu
version="$1"
here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
key=$(cat "$here/pom.xml" "$here/Tools.java" "$here/fetch.sh" | sha256sum | cut -c1-12)
folder="$cache/kafka-$version-$key"
if [ ! -d "$folder" ]; then
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/kafka-new-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  cp "$here/pom.xml" "$here/Tools.java" "$fresh"
  tries=0
  until mvn -q -B -f "$fresh/pom.xml" "-Dkafka.version=$version" \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies "-DoutputDirectory=$fresh/lib" \
    >"$fresh/mvn.log" 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 3 ] || { cat "$fresh/mvn.log" >&2; exit 1; }
  done
  javac -nowarn -cp "$fresh/lib/*" -d "$fresh/lib" "$fresh/Tools.java" >&2
  chmod 755 "$fresh"
  mv -T "$fresh" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
echo "$folder"
