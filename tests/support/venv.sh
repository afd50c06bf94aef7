#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# venv.sh [REQUIREMENT…]: prints the path of the python in a venv with these packages, which is made once in the user's
# cache folder. Without arguments the packages are those of check_webhook.py. If two run this at once, each makes a venv,
# and the first rename wins.
set -eu
requirements="${*:-standardwebhooks==1.0.0 cloudevents==1.11.0}"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/driftd"
venv="$cache/venv-$(printf '%s' "$requirements" | sha256sum | cut -c1-16)"
if [ ! -x "$venv/bin/python" ]; then
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/venv-new-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  python3 -m venv "$fresh" >&2
  "$fresh/bin/pip" install -q --disable-pip-version-check --no-cache-dir --retries 5 $requirements >&2
  mv -T "$fresh" "$venv" 2>/dev/null || [ -d "$venv" ]
fi
echo "$venv/bin/python"
