#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""failed_tests_are_told.py SOURCE: scripts/test.sh over tests that fail; the end of what it prints must tell why."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
KEPT = 210  # lines; a log of CI keeps some more

# As gtest prints a suite of which one test fails early and the others say much.
GTEST = """i=0
echo '[ RUN      ] Suite.Early'
echo 'early.cpp:7: Failure'
echo 'Value of: arrives()'
echo '  Actual: false (the broker was away)'
echo '[  FAILED  ] Suite.Early (3 ms)'
while [ $i -lt 30000 ]; do echo "line $i of a test that passes"; i=$((i+1)); done
echo '1 FAILED TEST'
exit 1"""


def end_of_run(tests):
    """Runs test.sh over `tests`, name: shell lines. Returns its exit code and its last lines."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copytree(SOURCE / "scripts", root / "scripts")
        (root / "docs").mkdir()
        shutil.copy(SOURCE / "docs/testing.md", root / "docs")
        (root / "build/release").mkdir(parents=True)
        text = "".join(f'add_test([=[{name}]=] sh -c [=[{lines}]=])\n' for name, lines in tests.items())
        if "slow" in tests:
            text += "set_tests_properties(slow PROPERTIES TIMEOUT 1)\nadd_test(absent no-such-program)\n"
        (root / "build/release/CTestTestfile.cmake").write_text(text)
        settings = {**os.environ, "PRESET": "release", "JOBS": "2"}
        done = subprocess.run([root / "scripts/test.sh"], env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout.splitlines()[-KEPT:]


def complaints():
    code, lines = end_of_run({"good": "echo all is well", "suite": GTEST, "short": "echo 'it broke'; exit 3",
                              "slow": "echo 'waiting for the server'; exec sleep 30"})
    end = "\n".join(lines[next((n for n, line in enumerate(lines) if line.startswith("--- ")), len(lines)):])
    if code == 0:
        yield "a run with failures ends with 0"
    for wanted in ("--- suite failed after", "early.cpp:7: Failure", "Actual: false (the broker was away)",
                   "line 29999 of a test that passes", "1 FAILED TEST", "--- short failed after", "  it broke",
                   "--- slow failed after 1", "  waiting for the server", "--- absent was not run", "no-such-program"):
        if wanted not in end:
            yield f"'{wanted}' is not at the end of the run:\n{end}"
    if "all is well" in end:
        yield "a test that passed is told as one that failed"
    talk = "for i in $(seq 100); do echo \"words $i\"; done; exit 1"
    _, lines = end_of_run({f"fails{i:03}": talk for i in range(300)})
    told = [n for n, line in enumerate(lines) if line.startswith("--- ")]
    if not told or "--- fails000 failed after" not in "\n".join(lines[-KEPT:]):
        yield f"of 300 failures the first is not in the last {KEPT} lines: {lines[:3]} … {lines[-3:]}"
    if "words 100" not in "\n".join(lines):
        yield "of 300 failures none shows its last line"
    if not re.fullmatch(r"--- and 2\d\d more", lines[-1]):
        yield f"that there are more failures than are told is not told: {lines[-1]}"
    code, lines = end_of_run({"good": "exit 0"})
    if code != 0 or any(line.startswith("--- ") for line in lines):
        yield f"a run without failures ends with {code} and {lines[-3:]}"


found = list(complaints())
print("\n".join(found) if found else "failed tests are told")
sys.exit(1 if found else 0)
