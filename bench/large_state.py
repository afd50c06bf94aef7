#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refreshes of a Terraform state of 120 MiB through the whole agent: seconds, CPU and peak memory of agent and worker.

usage: large_state.py BUILD [BUILD ...] [--mib 120]

Each BUILD is a build folder. Several are measured one after another on equal states, so that they can be compared.
Only sockets and files in a temporary folder are used. Exits with 1 if a refresh fails or finds another number of drifts
than there must be.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 300  # seconds for one refresh


def write_state(path, mib, edited):
    """Writes a state with an instance of a kilobyte for each key; the first `edited` ones have another name. Returns how
    many there are. The file is replaced by renaming. Its serial is always 1: a higher one would be an apply, and what an
    apply changes is no drift."""
    count, written = 0, 0
    with open(f"{path}.new", "w", encoding="ascii") as out:
        out.write('{"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"bench","outputs":{},"resources":[{'
                  '"mode":"managed","type":"aws_instance","name":"fleet","provider":"p","instances":[')
        while written < mib << 20:
            digits = "".join(str((count + 1) * 2654435761 * (k + 1) % 1000003) for k in range(150))
            name = "edited" if count < edited else "host"
            instance = '{"index_key":%d,"attributes":{"id":"i-%d","name":"%s","user_data":"%s"}}' % (
                count, count * 7919, name, digits)
            written += out.write(instance if count == 0 else "," + instance)
            count += 1
        out.write("]}]}")
    os.rename(f"{path}.new", path)
    return count


class Agent:
    """One agent with one backend. Its data and socket are in `folder`."""

    def __init__(self, build, folder, state):
        self.binary = build / "bin/driftd"
        self.socket = folder / "s"
        config = folder / "driftd.yaml"
        config.write_text(
            f"agent: {{ name: bench, data_dir: {folder}/data, plugin_dirs: [{build}/providers] }}\n"
            f"admin: {{ socket: {self.socket} }}\n"
            "defaults: { interval: 24h, budgets: { call: 240s } }\n"
            f"backends: [{{ name: platform, provider: terraform, settings: {{ path: {state} }} }}]\n")
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([self.binary, "run", "--config", config], stdout=log, stderr=log)

    def ask(self, *words):
        """Returns the answer in JSON; None if the agent does not answer, as while it starts."""
        done = subprocess.run([self.binary, *words, "-o", "json", "--socket", self.socket], capture_output=True)
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            return None

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end or self.process.poll() is not None:
                last = self.log.read_text(errors="replace").splitlines()[-20:]  # the folder goes with this process
                sys.exit("\n".join([f"error: {what} did not come about; the agent's last lines:", *last]))
            time.sleep(0.05)

    def row(self):
        rows = self.ask("backends") or {}
        rows = rows if isinstance(rows, list) else next((v for v in rows.values() if isinstance(v, list)), [])
        return rows[0] if rows else {}

    def established(self):
        row = self.row()
        return row.get("cycles", 0) > 0 and all(kind.get("established") for kind in row["coverage"])

    def pids(self):
        return self.process.pid, self.row()["worker"]["pid"]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def cpu(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def show(build, what, seconds, before, pids, drifts):
    used = [cpu(pid) - b for pid, b in zip(pids, before)]
    print(f"{build.parent.parent.name:<10} {what:<26} {seconds:6.2f} s  CPU {used[0]:6.2f} + {used[1]:5.2f} s  "
          f"peak {peak(pids[0]):4.0f} + {peak(pids[1]):4.0f} MiB  drifts {drifts}", flush=True)


def measure(build, mib):
    """Prints a line for each refresh. Returns whether every one found the drifts that there must be."""
    with tempfile.TemporaryDirectory() as name:
        folder, infra = pathlib.Path(name, "agent"), pathlib.Path(name, "infra")  # a file that is replaced beside the
        folder.mkdir()                                                            # configuration restarts the worker
        infra.mkdir()
        state = infra / "terraform.tfstate"
        count = write_state(state, mib, 0)
        begin = time.monotonic()
        agent = Agent(build, folder, state)
        try:
            agent.until("a baseline", agent.established)
            pids = agent.pids()
            show(build, "first, with the baseline", time.monotonic() - begin, (0, 0), pids, 0)
            right = True
            for what, edited in (("second, compares each once", 0), ("nothing changed", 0), ("one attribute changed", 1),
                                 ("every instance changed", count)):
                if edited:
                    write_state(state, mib, edited)
                begin, before = time.monotonic(), [cpu(pid) for pid in pids]
                done = subprocess.run([agent.binary, "refresh", "--full", "--socket", agent.socket], capture_output=True)
                agent.until(f"{edited} drifts", lambda: agent.row().get("open_drifts", 0) >= edited)
                seconds = time.monotonic() - begin
                found = agent.row().get("open_drifts", 0)
                show(build, what, seconds, before, pids, found)
                right = right and done.returncode in (0, 1) and found == edited
            return right
        finally:
            agent.stop()


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("builds", nargs="+", type=pathlib.Path)
    words.add_argument("--mib", type=int, default=120)
    given = words.parse_args()
    results = [measure(build.resolve(), given.mib) for build in given.builds]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
