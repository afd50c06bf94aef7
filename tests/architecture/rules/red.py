#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""red.py BUILD: rules on trees that break them. A rule that finds nothing where something is wrong is none."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).parent / "check.py"

# rule: files that break it, and what the rule must print, or nothing for files that only look like it
EXAMPLES = [
    ("unique", {
        "agent/sinks/nats/link.hpp": "namespace driftd::sinks {\nstruct Flight {\n  int acks = 0;\n};\n}\n",
        "agent/sinks/kafka/deliveries.hpp": "namespace driftd::sinks {\nstruct Flight {\n  long offset = 0;\n};\n}\n"},
     ["driftd::sinks::Flight", "agent/sinks/nats/link.hpp:2", "agent/sinks/kafka/deliveries.hpp:2"]),
    ("unique", {
        "agent/engine/a.cpp": "namespace driftd::engine {\nenum class Phase : int { on, off };\n}\n",
        "agent/store/b.cpp": "namespace driftd {\nnamespace engine {\nclass Phase final {};\n}\n}\n"},
     ["driftd::engine::Phase"]),
    ("unique", {
        "agent/core/a.hpp": "namespace driftd {\ninline int twice(int n) { return 2 * n; }\n}\n",
        "agent/base/b.hpp": "namespace driftd {\ninline int twice(int n) { return n + n; }\n}\n"},
     ["driftd::twice(int n)"]),
    ("unique", {  # one library, which may be compiled as one text
        "agent/store/a.cpp": "namespace driftd::store {\nnamespace {\nstruct Slice {};\n}\n}\n",
        "agent/store/b.cpp": "namespace driftd::store {\nnamespace {\nclass Slice {};\n}\n}\n"},
     ["driftd::store::(anonymous)::Slice"]),
    ("unique", {  # two libraries; another namespace; a declaration; a source that is compiled alone
        "agent/sinks/nats/a.cpp": "namespace driftd::sinks {\nnamespace {\nstruct Found {};\n}\nstruct Link;\n}\n",
        "agent/sinks/kafka/a.cpp": "namespace driftd::sinks {\nnamespace {\nstruct Found {};\n}\nstruct Link {};\n}\n",
        "agent/host/CMakeLists.txt": "driftd_room(host ALONE b.cpp DEPS base)\n",
        "agent/host/a.cpp": "namespace driftd::host {\nnamespace {\nstruct Limits {};\n}\n}\n",
        "agent/host/b.cpp": "namespace driftd::host {\nnamespace {\nstruct Limits {};\n}\nstruct Found {};\n}\n"}, []),
]


def complaint(rule, files, expected, build):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, CHECK, rule, folder, build], capture_output=True, text=True)
    if done.returncode != (1 if expected else 0) or done.stderr:
        return f"{rule}: exit {done.returncode} for {list(files)}: {done.stdout}{done.stderr}"
    missing = [part for part in expected if part not in done.stdout]
    return f"{rule}: no {missing} in: {done.stdout}" if missing else None


complaints = [c for rule, files, expected in EXAMPLES if (c := complaint(rule, files, expected, sys.argv[1]))]
print("\n".join(complaints) if complaints else f"red: {len(EXAMPLES)} examples")
sys.exit(1 if complaints else 0)
