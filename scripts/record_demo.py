#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `make demo ONCE=1` in a terminal of 148 columns and writes what it printed to docs/demo.svg, for README.md.

    "$(tests/support/venv.sh rich==13.9.4)" scripts/record_demo.py

Only the demo's own lines are kept, in their colours; the build before them and the temporary folder are left out.
"""
import io
import os
import pathlib
import pty
import re
import subprocess
import sys

from rich.console import Console
from rich.text import Text

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 148
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>make demo ONCE=1</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def run_in_terminal(command):
    """Returns what the command printed, and fails where it failed."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    child = subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=subprocess.STDOUT, env=environment)
    os.close(theirs)
    out = io.BytesIO()
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux answers EIO when the last process that writes has ended
            break
        if not piece:
            break
        out.write(piece)
    if child.wait() != 0:
        sys.exit(f"record_demo: {' '.join(command)} ended with {child.returncode}:\n{out.getvalue().decode()[-2000:]}")
    return out.getvalue().decode().replace("\r\n", "\n")


def demo_lines(text):
    lines = [line for line in text.split("\n") if re.match(r"\x1b\[[\d;]*m *[A-Za-z]+\x1b\[0m  ", line)]
    return [re.sub(r"/\S*/(driftd-demo-\w+)", r"/tmp/\1", line) for line in lines]


def main():
    lines = demo_lines(run_in_terminal(["make", "demo", "ONCE=1"]))
    if not lines:
        sys.exit("record_demo: the demo printed no line of the form that is expected")
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi("\n".join(["$ make demo ONCE=1", *lines])), soft_wrap=False)
    console.save_svg(str(ROOT / "docs" / "demo.svg"), title="make demo ONCE=1", code_format=FRAME, unique_id="demo")


if __name__ == "__main__":
    main()
