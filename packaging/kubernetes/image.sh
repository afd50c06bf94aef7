#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# image.sh DEB OUT [MIRROR]: an OCI archive of the agent, without a daemon and without a registry: a minimal Debian by
# debootstrap and the package by apt. Needs root, buildah, debootstrap. The build machine's mirror settings do not stay in the image.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 driftd_VERSION_ARCH.deb OUT.tar [MIRROR]" >&2; exit 2; }
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
container=$(b from scratch)
mount=$(b mount "$container")
debootstrap --variant=minbase bookworm "$mount" ${3:+"$3"} >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
cp "$deb" "$mount/driftd.deb"
cp /etc/resolv.conf "$mount/etc/resolv.conf"
apt-config dump | grep -E '^Acquire::(https?::|Check-)' >"$mount/etc/apt/apt.conf.d/99build" || true  # removed again below
chroot "$mount" sh -ec 'export DEBIAN_FRONTEND=noninteractive
  apt-get update -q && apt-get install -y -q --no-install-recommends ca-certificates /driftd.deb' >"$work/log" 2>&1 \
  || { tail -n 20 "$work/log" >&2; exit 1; }
rm -f "$mount/etc/apt/apt.conf.d/99build"
rm -rf "$mount/driftd.deb" "$mount"/var/cache/apt/archives/*.deb "$mount"/var/lib/apt/lists/* "$mount"/var/log/*.log \
  "$mount/etc/resolv.conf" "$mount/etc/hostname"
b umount "$container" >/dev/null
b config --user 64000:64000 --entrypoint '["/usr/bin/driftd"]' --cmd 'run --config /etc/driftd/driftd.yaml' \
  --volume /var/lib/driftd --volume /run/driftd "$container"
b commit -q "$container" "oci-archive:$out:driftd:latest" >/dev/null
echo "$out"
