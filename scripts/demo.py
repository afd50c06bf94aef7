#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""driftd on real servers, in a temporary folder, on free ports.

Starts redis-server, PostgreSQL and nats-server, gives driftd only the rights that each provider's README grants, runs
the agent, changes each system from outside, and shows each drift, its NATS message and its notification as they arrive.
`--once` checks all of it and exits 0; without it the demo goes on until Ctrl-C.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
DRIFTD = BUILD / "bin" / "driftd"
TTY = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(code, text):
    return f"\033[{code}m{text}\033[0m" if TTY else text


def say(who, text, code="1;36"):
    print(f"{paint(code, f'{who:>12}')}  {text}", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, condition, seconds=30):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise SystemExit(f"demo: gave up after {seconds} s waiting for {what}")


def grants(provider, language, **values):
    """The copy-paste block of the provider's README that grants its rights."""
    text = (ROOT / "plugins" / provider / "README.md").read_text()
    section = text[text.index("## Rights"):]
    block = re.search(rf"```{language}\n(.*?)```", section, re.S)
    if not block:
        raise SystemExit(f"demo: plugins/{provider}/README.md has no ```{language} block under '## Rights'")
    out = block.group(1)
    for old, new in values.items():
        out = out.replace(old.replace("__", "-"), new)
    return out


class Processes:
    """Children that end with the demo, newest first."""

    def __init__(self):
        self.all = []

    def start(self, command, log, **options):
        child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=open(log, "ab"),
                                 stderr=subprocess.STDOUT, start_new_session=True, **options)
        self.all.append(child)
        return child

    def stop(self):
        for child in reversed(self.all):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(12)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()


class Redis:
    def __init__(self, folder, processes):
        self.port = free_port()
        (folder / "redis").mkdir()
        processes.start(["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", folder / "redis",
                         "--save", "", "--appendonly", "no"], folder / "redis.log")
        wait_for("redis-server", lambda: self.cli("ping") == "PONG")

    def cli(self, *words):
        run = subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True)
        return run.stdout.strip()

    def grant(self, password):
        for line in grants("redis", "redis").splitlines():
            if line.strip() and not line.startswith("#"):
                words = line.replace("CHANGE-ME", password).split()
                answer = self.cli(*words)
                if answer != "OK":
                    raise SystemExit(f"demo: redis refused '{' '.join(words[:3])} ...': {answer}")


class Postgres:
    def __init__(self, folder, processes):
        self.port = free_port()
        self.dir = folder / "pg"
        self.dir.mkdir()
        self.bin = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        self.options = {}
        if os.getuid() == 0:
            shutil.chown(self.dir, "postgres", "postgres")
            self.options = {"user": "postgres", "group": "postgres", "extra_groups": []}
        (folder / "pw").write_text("demo-superuser\n")
        os.chmod(folder / "pw", 0o644)
        subprocess.run([self.bin / "initdb", "-D", self.dir / "data", "-U", "postgres", "--pwfile", folder / "pw",
                        "-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"],
                       check=True, capture_output=True, cwd=self.dir, **self.options)
        processes.start([self.bin / "postgres", "-D", self.dir / "data", "-p", self.port, "-k", self.dir,
                         "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"], folder / "pg.log",
                        cwd=self.dir, **self.options)
        wait_for("PostgreSQL", lambda: self.sql("select 1", check=False) == "1")

    def sql(self, text, check=True):
        run = subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", "postgres",
                              "-qAtX", "-v", "ON_ERROR_STOP=1"], input=text, capture_output=True, text=True,
                             env={**os.environ, "PGPASSWORD": "demo-superuser"})
        if check and run.returncode:
            raise SystemExit(f"demo: psql: {run.stderr}")
        return run.stdout.strip()


class Nats(threading.Thread):
    """A subscriber that speaks the NATS text protocol: enough to show what arrives."""

    def __init__(self, folder, processes):
        super().__init__(daemon=True)
        self.port = free_port()
        processes.start(["nats-server", "-a", "127.0.0.1", "-p", self.port, "-js", "-sd", folder / "nats"],
                        folder / "nats.log")
        wait_for("nats-server", self.reachable)
        self.messages = []

    def reachable(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def run(self):
        stream = socket.create_connection(("127.0.0.1", self.port)).makefile("rwb", 0)
        stream.readline()
        stream.write(b'CONNECT {"verbose":false,"headers":true}\r\nSUB backend.> 1\r\nPING\r\n')
        while line := stream.readline():
            words = line.decode().split()
            if words and words[0] == "PING":
                stream.write(b"PONG\r\n")
            elif words and words[0] == "HMSG":
                heads, total = int(words[-2]), int(words[-1])
                raw = self.exactly(stream, total)
                stream.readline()
                self.take(words[1], raw[:heads].decode(), raw[heads:])
            elif words and words[0] == "MSG":
                self.exactly(stream, int(words[-1]))
                stream.readline()

    @staticmethod
    def exactly(stream, size):
        out = b""
        while len(out) < size:
            out += stream.read(size - len(out))
        return out

    def take(self, subject, headers, body):
        if subject.startswith(("backend.type.", "backend.source.")):
            return
        text = subprocess.run(["protoc", "--decode=driftd.v1.BackendChangeEvent", "-I", ROOT / "agent" / "proto",
                               "driftd/v1/event.proto"], input=body, capture_output=True).stdout.decode()
        fields = ", ".join(re.findall(r'changed_fields: "(.*)"', text))
        status = re.search(r'reconciliation_status: "(.*)"', text)
        identity = re.search(r"ce-id: *(\S+)", headers)
        self.messages.append((subject, text))
        say("NATS", f"{paint('1;35', subject)}  {fields}  {status.group(1) if status else ''}  "
                    f"{paint('2', identity.group(1) if identity else '')}", "1;35")


def state(serial, secret, replicas):
    return json.dumps({
        "version": 4, "terraform_version": "1.9.0", "serial": serial,
        "lineage": "0f5b3c0e-demo-4f0f-9d5e-1f2e3d4c5b6a",
        "outputs": {"endpoint": {"value": "orders.example.org:5432", "type": "string"}},
        "resources": [{"mode": "managed", "type": "kafka_topic", "name": "orders",
                       "provider": 'provider["registry.example.org/mongey/kafka"]',
                       "instances": [{"schema_version": 1, "attributes": {
                           "name": "orders", "partitions": 12, "replication_factor": replicas,
                           "config": {"retention.ms": "604800000"}, "sasl_password": secret},
                           "sensitive_attributes": [[{"type": "get_attr", "value": "sasl_password"}]]}]}],
        "check_results": None}, indent=2)


def replace(path, text):
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)


class Agent:
    def __init__(self, folder, processes, redis, postgres, nats, tfstate):
        self.socket = folder / "driftd.sock"
        self.config = folder / "driftd.yaml"
        self.config.write_text(f"""\
agent:
  name: demo
  data_dir: {folder}/data
  plugin_dirs: ["{BUILD}/providers"]
admin:
  listen: "127.0.0.1:{free_port()}"
  socket: {self.socket}
defaults:
  interval: 2s
backends:
  - name: cache
    provider: redis
    settings: {{ address: "127.0.0.1:{redis.port}", username: driftd, password: "${{env:DEMO_REDIS_PASSWORD}}" }}
  - name: orders-db
    provider: postgres
    settings: {{ endpoints: ["127.0.0.1:{postgres.port}"], database: postgres, user: driftd, password: "${{env:DEMO_PG_PASSWORD}}", sslmode: disable }}
  - name: platform
    provider: terraform
    settings: {{ path: {tfstate} }}
sinks:
  bus: {{ type: nats, servers: ["nats://127.0.0.1:{nats.port}"], jetstream: {{ stream: DRIFT }} }}
  desk: {{ type: notifications }}
routes:
  - {{ to: [bus, desk] }}
""")
        environment = {**os.environ, "DEMO_REDIS_PASSWORD": "demo-redis", "DEMO_PG_PASSWORD": "demo-pg"}
        self.log = folder / "driftd.log"
        self.child = processes.start([DRIFTD, "run", "--config", self.config], self.log, env=environment)
        wait_for("the agent's baselines", self.ready, 60)

    def ask(self, *words):
        run = subprocess.run([DRIFTD, *words, "--socket", self.socket, "-o", "json"], capture_output=True, text=True)
        return json.loads(run.stdout) if run.stdout.strip() else None

    def ready(self):
        if self.child.poll() is not None:
            raise SystemExit(f"demo: the agent ended with {self.child.returncode}:\n{self.log.read_text()}")
        backends = self.rows("backends")
        whole = [b for b in backends if b["coverage"] and all(c["established"] for c in b["coverage"])]
        return len(whole) == 3

    def rows(self, *words):
        answer = self.ask(*words)
        names = {"drifts": "drifts", "queue": "notifications", "backends": "backends"}
        return (answer or {}).get(names[words[0]], [])


def show_drifts(agent, seen):
    for drift in agent.rows("drifts", "--all"):
        mark = (drift["id"], drift["status"])
        if mark in seen:
            continue
        seen.add(mark)
        what = ", ".join(f"{c['path']}: {c.get('old')} → {c.get('new')}" for c in drift["changes"])
        say("drift", f"{drift['backend']}  {drift['resource']}  {paint('1', what)}  {drift['status']}", "1;33")
    for note in agent.rows("queue"):
        mark = ("queue", note["id"])
        if mark not in seen:
            seen.add(mark)
            say("notification", f"{note['title']}  {paint('2', ' / '.join(note['actions']))}", "1;32")


def check(agent, nats, seen):
    """What `ONCE=1` demands of what arrived."""
    subjects = {s for s, _ in nats.messages}
    wanted = {"backend.cache.config.updated", "backend.orders-db.credentials.rotated", "backend.platform.config.updated"}
    arrived = wanted <= subjects
    queue = [n for n in agent.rows("queue")]
    drifts = {d["backend"] for d in agent.rows("drifts", "--all")}
    return arrived and len(queue) >= 2 and {"cache", "orders-db", "platform"} <= drifts


def demo(folder, once):
    processes = Processes()
    try:
        say("demo", f"everything lives in {folder}")
        redis, postgres, nats = Redis(folder, processes), Postgres(folder, processes), Nats(folder, processes)
        say("servers", f"redis :{redis.port}  PostgreSQL :{postgres.port}  NATS :{nats.port}")
        redis.grant("demo-redis")
        postgres.sql(grants("postgres", "sql").replace("CHANGE-ME", "demo-pg"))
        postgres.sql("create role app login password 'first'")
        tfstate = folder / "terraform.tfstate"
        tfstate.write_text(state(7, "s3cr3t-one", 3))
        nats.start()
        agent = Agent(folder, processes, redis, postgres, nats, tfstate)
        seen = set()
        show_drifts(agent, seen)
        nats.messages.clear()
        say("agent", "baselines are taken; now three changes from outside")
        say("you", "redis-cli CONFIG SET maxmemory 64mb", "1;31")
        redis.cli("config", "set", "maxmemory", "64mb")
        say("you", "ALTER ROLE app PASSWORD '…'", "1;31")
        postgres.sql("alter role app password 'second'")
        say("you", "edit terraform.tfstate: replication_factor 3 → 2, same serial", "1;31")
        replace(tfstate, state(7, "s3cr3t-one", 2))
        if once:
            def arrived():
                show_drifts(agent, seen)
                return check(agent, nats, seen)
            wait_for("three drifts, their NATS messages and notifications", arrived, 60)
            leaks = [p for p in folder.glob("data/*") if p.is_file() and b"s3cr3t-one" in p.read_bytes()]
            if leaks or any("s3cr3t" in text for _, text in nats.messages):
                raise SystemExit(f"demo: a secret leaked into {leaks or 'a message'}")
            say("demo", "three drifts, three messages, two questions to decide: as promised", "1;32")
            return
        say("demo", f"try: {DRIFTD} drifts --socket {agent.socket}   (approve, reject, ignore ID@DIGEST; Ctrl-C ends)")
        while agent.child.poll() is None:
            show_drifts(agent, seen)
            time.sleep(0.5)
    finally:
        processes.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--once", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="driftd-demo-") as name:
        folder = pathlib.Path(name)
        os.chmod(folder, 0o711)
        try:
            demo(folder, args.once)
        except KeyboardInterrupt:
            print()
            say("demo", "stopped; nothing is left behind")
        except SystemExit:
            for log in sorted(folder.glob("*.log")):
                tail = log.read_text(errors="replace").splitlines()[-15:]
                print(f"--- {log.name}", *tail, sep="\n", file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
