#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# image.sh DEB OUT [ROOT]: an OCI archive of the agent, without a daemon and without a registry: Debian's packages in an empty
# image. ROOT: a minimal Debian tree to start from (made by debootstrap where absent). Needs root, buildah, debootstrap.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 driftd_VERSION_ARCH.deb OUT.tar [ROOT]" >&2; exit 2; }
deb=$(realpath "$1")
out=$(realpath -m "$2")
[ -f "$deb" ] || { echo "$0: no package $1; make package builds it" >&2; exit 2; }
for tool in buildah debootstrap; do
  command -v "$tool" >/dev/null || { echo "$0: needs $tool: apt-get install $tool" >&2; exit 1; }
done
work=$(mktemp -d)
container=""
b() { buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" "$@"; }
clean() {
  [ -z "$container" ] || b umount "$container" >/dev/null 2>&1 || true
  [ -z "$container" ] || b rm "$container" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT
root=${3:-}
if [ -z "$root" ]; then
  root="$work/root"
  debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2; exit 1; }
fi
container=$(b from scratch)
mount=$(b mount "$container")
cp -a "$root/." "$mount/"
cp "$deb" "$mount/driftd.deb"
chroot "$mount" sh -ec 'export DEBIAN_FRONTEND=noninteractive
  apt-get update -q && apt-get install -y -q --no-install-recommends ca-certificates /driftd.deb
  rm -rf /driftd.deb /var/lib/apt/lists/* /var/cache/apt/archives/*.deb' >"$work/install.log" 2>&1 \
  || { tail -n 20 "$work/install.log" >&2; exit 1; }
b umount "$container" >/dev/null
b config --user 64000:64000 --entrypoint '["/usr/bin/driftd"]' --cmd 'run --config /etc/driftd/driftd.yaml' \
  --volume /var/lib/driftd --volume /run/driftd "$container"
b commit -q "$container" "oci-archive:$out:driftd:latest" >/dev/null
echo "$out"
