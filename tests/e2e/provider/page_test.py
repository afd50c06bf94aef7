#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/write-a-provider.md as they are printed: its ```sh blocks in order, in one shell, in an empty
folder, with the built programs on PATH. A ```text block after a ```sh block is what the last command must print; `…`
matches any text. A comment `# exits N` says that a command must exit with N instead of 0. With another language than the
page's, only the commands before the first `make install` are run.

Prints how many seconds each command took. The limit is on CPU time, which does not depend on what else the machine does.
"""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

MAX_CPU_SECONDS = 120
PAGE_LANGUAGE = "--lang c"


def blocks(page):
    """Returns (language, text) of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S)


def commands(block):
    """Yields the commands of a block: each is a line, or a line with its here-document."""
    lines = block.splitlines()
    while lines:
        command = lines.pop(0)
        here = re.search(r"<<-?'?(\w+)'?", command)
        while here and lines:
            command += "\n" + lines.pop(0)
            if command.endswith("\n" + here.group(1)):
                break
        if command.strip():
            yield command


def steps(page, language):
    """Returns [command, expected exit code, expected output or None] of each command of the page."""
    out = []
    for kind, text in blocks(page):
        if kind == "sh":
            for command in commands(text):
                exits = re.search(r"# exits (\d+)", command)
                out.append([command, int(exits.group(1)) if exits else 0, None])
        elif kind == "text" and out:
            out[-1][2] = text
    if f"--lang {language}" != PAGE_LANGUAGE:
        first = next(i for i, step in enumerate(out) if step[0].startswith("make install"))
        out = [[c.replace(PAGE_LANGUAGE, f"--lang {language}"), code, None] for c, code, _ in out[:first]]
    return out


def as_pattern(text):
    """Returns a pattern for the text in which any white space matches any other, and `…` matches any text."""
    words = [re.escape(word).replace("…", ".*?") for word in text.split()]
    return re.compile(r"\s+".join(words).replace(r"\s+.*?\s+", r"\s.*?"), re.S)


class Shell:
    """One bash that runs command after command."""

    def __init__(self, folder, environment):
        self.bash = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, env=environment, text=True, bufsize=1,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        end = f"end-of-command-{time.monotonic_ns()}"
        self.bash.stdin.write(f"{command}\nprintf '\\n{end} %d\\n' $?\n")
        self.bash.stdin.flush()
        output = []
        for line in self.bash.stdout:
            if line.startswith(end):
                return int(line.split()[1]), "".join(output)[:-1]
            output.append(line)
        sys.exit(f"page_test: the shell ended in: {command}")

    def close(self):
        """Ends the shell and the processes that the page left running in it."""
        self.run("kill $(jobs -p) 2>/dev/null; wait")
        self.bash.stdin.close()
        self.bash.wait()


def walk(arguments, folder):
    environment = {**os.environ, "PATH": f"{arguments.bin}:{os.environ['PATH']}", "NO_COLOR": "1", "TARGET": arguments.target}
    shell, table, wrong = Shell(folder, environment), [], []
    try:
        for command, code, expected in steps(pathlib.Path(arguments.page).read_text(), arguments.lang):
            begin = time.monotonic()
            exit_code, output = shell.run(command)
            table.append((time.monotonic() - begin, command.splitlines()[0]))
            print(f"$ {command}\n{output}", flush=True)
            if exit_code != code:
                wrong.append(f"`{command}` exited with {exit_code}, the page says {code}")
            elif expected and not as_pattern(expected).fullmatch(output.strip()):
                wrong.append(f"`{command}` printed\n{output}\nthe page says\n{expected}")
            if wrong:
                break
    finally:
        shell.close()
    return table, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("page", "bin", "target", "lang"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="driftd-page-") as folder:
        table, wrong = walk(arguments, folder)
        for path in [folder, os.path.join(folder, "acme", "driftd.log")] if wrong else []:
            if os.path.isfile(path):
                print(pathlib.Path(path).read_text())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print("\nseconds  command")
    for seconds, command in table:
        print(f"{seconds:7.1f}  {command}")
    total = sum(seconds for seconds, _ in table)
    print(f"{total:7.1f}  in total; {cpu:.1f} s of CPU time, the maximum is {MAX_CPU_SECONDS}")
    if not table:
        sys.exit("page_test: the page has no commands")
    if cpu > MAX_CPU_SECONDS:
        wrong.append(f"{cpu:.0f} s of CPU time: that is too long for a reader of the page")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
