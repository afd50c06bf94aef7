#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the .deb on a minimal Debian: builds it, installs it into a fresh bookworm root, finds a drift there, purges it.

The root is made by `debootstrap --variant=minbase` once and kept as a tarball in $XDG_CACHE_HOME/driftd. Everything runs
in a mount namespace of its own, so that no mount is left behind however the test ends. Needs root. apt uses the Debian
mirrors and the proxy of this machine.
"""
import argparse
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SUITE = "bookworm"
TOOLS = ["debootstrap", "unshare", "mount", "umount", "chroot", "tar", "dpkg", "dpkg-deb", "dpkg-shlibdeps", "file",
         "apt-config", "pkg-config"]
INSIDE = "INSIDE_MOUNT_NAMESPACE"
CONFIG = """\
agent:
  data_dir: /var/lib/driftd
admin:
  listen: ""
  socket: /run/driftd/driftd.sock
  read_group: driftd-read
  decide_group: driftd-decide
backends:
  - name: platform
    provider: terraform
    settings: { path: /srv/terraform/terraform.tfstate }
sinks:
  desk: { type: notifications }
"""


def require(condition, what):
    if not condition:
        raise SystemExit(f"package_test: {what}")


def run(command, expect=0, **options):
    """Runs a command, shows its output, and returns it; another exit code than `expect` ends the test."""
    print("+", *command, flush=True)
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **options)
    lines = done.stdout.splitlines()
    print("\n".join(lines[-60:]), flush=True)
    require(done.returncode == expect, f"'{command[0]} …' exited {done.returncode}, expected {expect}; output above")
    return done.stdout


def apt_network():
    """Returns the settings of this machine's apt for proxies and checks of mirrors, as lines of apt.conf."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    wanted = re.compile(r'^Acquire::(https?::(Proxy|Verify)|Check-)[^ ]* "[^"]+";$')
    return [line for line in dump.splitlines() if wanted.match(line)]


def debian_sources():
    """Returns (file, mirror) of each source list of this machine that names a Debian mirror."""
    folder = pathlib.Path("/etc/apt")
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    mirror = re.compile(r"^(?:deb |URIs:).*?(https?://[^ ]*/debian)/?(?: |$)", re.M)
    return [(file, found.group(1)) for file in files if file.is_file()
            if (found := mirror.search(file.read_text())) and SUITE in file.read_text()]


def minimal_debian(root):
    """Unpacks the cached root into `root`, or makes it and caches it."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "driftd"
    architecture = run(["dpkg", "--print-architecture"]).strip()
    tarball = cache / f"debian-{SUITE}-minbase-{architecture}.tar"
    if tarball.exists():
        run(["tar", "-C", root, "--numeric-owner", "-xpf", tarball])
        return
    sources = debian_sources()
    environment = dict(os.environ)
    for line in apt_network():
        if line.startswith("Acquire::http::Proxy "):
            environment.setdefault("http_proxy", line.split('"')[1])
    require(sources, f"no source list under /etc/apt names a Debian mirror with {SUITE}; debootstrap needs one")
    run(["debootstrap", "--variant=minbase", SUITE, root, sources[0][1]], env=environment)
    cache.mkdir(parents=True, exist_ok=True)
    fresh = tarball.with_suffix(f".{os.getpid()}")
    try:
        run(["tar", "-C", root, "--numeric-owner", "--exclude=./var/cache/apt/archives/*.deb", "-cpf", fresh, "."])
        fresh.rename(tarball)
    finally:
        fresh.unlink(missing_ok=True)


class Root:
    """The Debian root, with /proc and this machine's name resolution and apt sources."""

    def __init__(self, path):
        self.path = path
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
                            "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}

    def __enter__(self):
        minimal_debian(self.path)
        for name in ("resolv.conf", "hosts"):
            shutil.copyfile(f"/etc/{name}", self.path / "etc" / name)
        sources = debian_sources()
        if sources:
            (self.path / "etc/apt/sources.list").unlink(missing_ok=True)
        for file, _ in sources:
            where = "etc/apt" if file.name == "sources.list" else "etc/apt/sources.list.d"
            shutil.copyfile(file, self.path / where / file.name)
        (self.path / "etc/apt/apt.conf.d/99network").write_text("\n".join(apt_network()) + "\n")
        run(["mount", "-t", "proc", "proc", self.path / "proc"])
        return self

    def __exit__(self, *_):
        run(["umount", self.path / "proc"])

    def call(self, *command, expect=0):
        return run(["chroot", self.path, *command], expect, env=self.environment)

    def driftd(self, *words, expect=0):
        """Runs driftd as the user of the systemd unit, so that owners and modes of the package are tested too."""
        return self.call("runuser", "-u", "driftd", "--", "driftd", *words, expect=expect)


def build(cpack, config, folder):
    run([cpack, "-B", folder, "--config", config], cwd=folder)
    packages = list(folder.glob("*.deb"))
    require(len(packages) == 1, f"one .deb expected in {folder}, found {[p.name for p in packages]}")
    depends = run(["dpkg-deb", "--field", packages[0], "Depends"])
    for library in ("libc6 (>=", "libpq5", "libhiredis", "librdkafka1", "libcurl", "libssl3", "passwd"):
        require(library in depends, f"Depends lacks {library}: {depends}")
    return packages[0]


def check_installed(root):
    owner = root.call("stat", "-c", "%U:%G %a", "/var/lib/driftd", "/etc/driftd/driftd.yaml",
                      "/etc/driftd/secrets").splitlines()
    require(owner == ["driftd:driftd 700", "root:driftd 640", "root:driftd 750"], f"owners and modes are {owner}")
    conffiles = root.call("dpkg-query", "-W", "-f", "${Conffiles}", "driftd")
    require("/etc/driftd/driftd.yaml" in conffiles, f"the configuration is not a conffile: {conffiles!r}")
    require("0 backends" in root.driftd("validate"), "the shipped config is not the empty one")
    require(re.search(r"\d+\.\d+\.\d+", root.driftd("version")), "`driftd version` names no version")
    plugins = sorted(file.name for file in (root.path / "usr/lib/driftd/providers").iterdir())
    require(plugins == ["k8s.so", "kafka.so", "keycloak.so", "postgres.so", "redis.so", "terraform.so"], f"providers are {plugins}")
    for plugin in plugins:
        libraries = root.call("ldd", f"/usr/lib/driftd/providers/{plugin}")
        require("not found" not in libraries, f"{plugin} lacks a library")
    check_unit(root)


def check_unit(root):
    """Verifies the unit with this machine's systemd-analyze, if it has one, because minbase has no systemd."""
    unit = root.path / "lib/systemd/system/driftd.service"
    require(unit.is_file(), f"no {unit}")
    require("\nTimeoutStartSec=infinity\n" in unit.read_text(),
            "driftd.service has no TimeoutStartSec=infinity, so a start that rewrites a large store is killed after 90 s")
    if shutil.which("systemd-analyze"):
        copy = root.path.parent / "driftd.service"
        copy.write_text(unit.read_text().replace("=/usr/bin/driftd", f"={root.path}/usr/bin/driftd"))
        found = run(["systemd-analyze", "verify", "--man=no", copy])
        require("driftd.service:" not in found, "systemd finds fault with driftd.service")


def check_sdk(root):
    flags = run(["pkg-config", "--cflags", "driftd-plugin-api"],
                env={**os.environ, "PKG_CONFIG_LIBDIR": str(root.path / "usr/share/pkgconfig")})
    include = re.search(r"-I(\S+)", flags)
    require(include and pathlib.Path(include.group(1), "driftd/provider.h").is_file(), f"no provider.h behind {flags}")
    cmake = root.path / "usr/share/cmake/driftd_plugin_api"
    for name in ("driftd_plugin_apiConfig.cmake", "driftd_plugin_apiTargets.cmake", "provider.map"):
        require((cmake / name).is_file(), f"no {cmake / name}")


def write_state(root, replication_factor):
    folder = root.path / "srv/terraform"
    folder.mkdir(exist_ok=True)
    fresh = folder / "terraform.tfstate.new"
    topic = {"name": "orders", "partitions": 12, "replication_factor": replication_factor}
    fresh.write_text(json.dumps({
        "version": 4, "terraform_version": "1.9.0", "serial": 7, "lineage": "0f5b3c0e-0000-4f0f-9d5e-1f2e3d4c5b6a",
        "outputs": {}, "check_results": None,
        "resources": [{"mode": "managed", "type": "kafka_topic", "name": "orders",
                       "provider": 'provider["registry.example.org/mongey/kafka"]',
                       "instances": [{"schema_version": 1, "attributes": topic, "sensitive_attributes": []}]}]}))
    fresh.chmod(0o644)
    fresh.rename(folder / "terraform.tfstate")


def check_drift(root):
    (root.path / "etc/driftd/driftd.yaml").write_text(CONFIG)
    root.driftd("validate")
    write_state(root, 3)
    root.driftd("once")
    write_state(root, 2)
    found = root.driftd("once", expect=1)
    for word in ("kafka_topic.orders", "replication_factor"):
        require(word in found, f"the drift's report lacks {word!r}")


def check_groups(root):
    """Members of driftd-read and driftd-decide cannot read credentials, the configuration or the store."""
    groups = root.call("getent", "group", "driftd", "driftd-read", "driftd-decide")
    require([line.split(":")[3] for line in groups.splitlines()] == ["", "", ""], f"groups have members: {groups}")
    secret = root.path / "etc/driftd/secrets/redis"
    secret.write_text("hunter2\n")
    root.call("chown", "driftd:driftd", "/etc/driftd/secrets/redis")
    root.call("chmod", "0400", "/etc/driftd/secrets/redis")
    for user, group in (("rita", "driftd-read"), ("dora", "driftd-decide")):
        root.call("useradd", "--groups", group, "--no-create-home", user)
        for file in ("/etc/driftd/secrets/redis", "/etc/driftd/driftd.yaml", "/var/lib/driftd/store.db",
                     "/var/lib/driftd/installation.key"):
            root.call("runuser", "-u", user, "--", "cat", file, expect=1)
    root.call("runuser", "-u", "driftd", "--", "cat", "/etc/driftd/secrets/redis")
    root.call("useradd", "--no-create-home", "stranger")
    root.call("install", "-d", "-o", "driftd", "-g", "driftd", "-m", "0755", "/run/driftd")
    agent = subprocess.Popen(["chroot", root.path, "runuser", "-u", "driftd", "--", "driftd", "run"], env=root.environment,
                             stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        check_access(root)
    finally:
        os.killpg(agent.pid, signal.SIGTERM)
        agent.wait(30)


def check_access(root):
    """A member of driftd-read may look, one of driftd-decide may decide, anybody else neither."""
    def driftd(user, *words, expect):
        return root.call("runuser", "-u", user, "--", "driftd", *words, expect=expect)

    deadline = time.monotonic() + 30
    while subprocess.run(["chroot", root.path, "driftd", "status", "--probe", "ready"], env=root.environment,
                         capture_output=True, check=False).returncode != 0:
        require(time.monotonic() < deadline, "the agent is not ready within 30 s")
        select.select([], [], [], 0.2)
    found = json.loads(driftd("rita", "-o", "json", "drifts", expect=1))["drifts"]
    require(len(found) == 1, f"one drift expected: {found}")
    require("denied" in driftd("rita", "approve", found[0]["ref"], expect=1), "a reader may decide")
    require("denied" in driftd("stranger", "status", expect=1), "a stranger may look")
    driftd("dora", "reject", found[0]["ref"], "--reason", "put it back", expect=0)
    audit = driftd("rita", "audit", expect=0)
    for word in ("dora", "put it back", "refused", "rita", "stranger"):
        require(word in audit, f"the audit log lacks {word!r}")
    driftd("rita", "audit", "--verify", expect=0)


def check_purged(root):
    root.call("apt-get", "purge", "-y", "driftd")
    for left in ("usr/bin/driftd", "usr/lib/driftd", "etc/driftd", "var/lib/driftd"):
        require(not (root.path / left).exists(), f"purge left /{left}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpack", required=True)
    parser.add_argument("--config", required=True)
    arguments = parser.parse_args()
    require(os.geteuid() == 0, "needs root, for debootstrap and chroot")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    require(not missing, f"needs {', '.join(missing)}; run `make deps`, or apt-get install them")
    if INSIDE not in os.environ:
        os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv],
                   {**os.environ, INSIDE: "1"})
    with tempfile.TemporaryDirectory(prefix="driftd-package-") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)  # the user driftd looks up the path to /
        (folder / "deb").mkdir()
        (folder / "root").mkdir()
        package = build(arguments.cpack, arguments.config, folder / "deb")
        with Root(folder / "root") as root:
            shutil.copyfile(package, root.path / "driftd.deb")
            root.call("apt-get", "update")
            root.call("apt-get", "install", "-y", "--no-install-recommends", "/driftd.deb")
            check_installed(root)
            check_sdk(root)
            check_drift(root)
            check_groups(root)
            check_purged(root)


if __name__ == "__main__":
    main()
