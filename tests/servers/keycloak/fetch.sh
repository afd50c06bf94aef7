#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folder that holds Keycloak VERSION ($1): the distribution, already built for an H2 file, and the file of a
# database whose tables exist (database/keycloak.mv.db), so that a server starts without making them. Its administrator
# is admin with the password admin. Made once under the user's cache folder, keyed by version and by this script. Two may
# run at once: each makes its own and the first rename wins. Needs mvn, unzip and Java 17.
set -eu
version="$1"
here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
key=$(sha256sum "$here/fetch.sh" | cut -c1-12)
folder="$cache/keycloak-$version-$key"
if [ ! -d "$folder" ]; then
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/keycloak-new-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  tries=0
  until mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    "-Dartifact=org.keycloak:keycloak-quarkus-dist:$version:zip" "-DoutputDirectory=$fresh" >"$fresh/mvn.log" 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 3 ] || { cat "$fresh/mvn.log" >&2; exit 1; }
  done
  unzip -q "$fresh/keycloak-quarkus-dist-$version.zip" -d "$fresh"
  rm "$fresh/keycloak-quarkus-dist-$version.zip"
  mv "$fresh/keycloak-$version" "$fresh/dist"
  "$fresh/dist/bin/kc.sh" build --db=dev-file >"$fresh/build.log" 2>&1 || { cat "$fresh/build.log" >&2; exit 1; }
  mkdir "$fresh/database"
  # Makes the tables and the administrator, and ends.
  KC_DB_URL="jdbc:h2:file:$fresh/database/keycloak;NON_KEYWORDS=VALUE" KC_ADMIN_PASSWORD=admin \
    "$fresh/dist/bin/kc.sh" bootstrap-admin user --optimized --username admin --password:env KC_ADMIN_PASSWORD \
    >"$fresh/database.log" 2>&1 || { cat "$fresh/database.log" >&2; exit 1; }
  chmod 755 "$fresh"
  mv -T "$fresh" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
echo "$folder"
