#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""failed_tests.py JUNIT: prints for each failed test of a run what it said where it failed and its last lines.

A log of which only the end is kept then still tells why. At most 40 lines of a test and some 200 in all: of further
failures the names, and of those beyond the number.
"""
import re
import sys
import xml.etree.ElementTree

OF_ONE, IN_ALL, AT_LEAST, NAMES, WIDTH = 40, 200, 8, 20, 400  # lines; characters
FAILURE = re.compile(r": Failure$|^unknown file: Failure|Sanitizer: |: runtime error: |^Traceback |^terminate called")


def places(lines):
    """Numbers of the lines that tell of a failure: from each beginning to gtest's next line of its own or a gap."""
    out, inside = [], False
    for number, line in enumerate(lines):
        inside = bool(FAILURE.search(line)) or (inside and line.strip() != "" and not re.match(r"\[[ =\-A-Z]{10}\]", line))
        if inside or line.startswith("[  FAILED  ]"):
            out.append(number)
    return out


def excerpt(lines, most):
    """Returns at most `most` lines: two thirds for the failures, from the first one on, the others for the end."""
    if len(lines) <= most:
        return lines
    room = most - 2  # two lines may say that something was left out
    told = [n for n in places(lines) if n < len(lines) - room // 3][:room - room // 3]
    shown = told + list(range(max(len(lines) - (room - len(told)), told[-1] + 1 if told else 0), len(lines)))
    out, before = [], -1
    for number in shown:
        if number > before + 1 and (before < 0 or number == shown[len(told)]):
            out.append("[…]")
        out.append(lines[number])
        before = number
    return out


def why(case):
    """Returns the words for what became of a test that did not pass, or none if it passed or skipped itself."""
    skipped = case.find("skipped")
    if case.get("status") == "fail":
        return f"failed after {float(case.get('time', 0)):.1f} s"
    if case.get("status") == "notrun" and skipped is not None and not skipped.get("message", "").startswith("SKIP_"):
        return "was not run"
    return None


def main(junit):
    told = [(case, words) for case in xml.etree.ElementTree.parse(junit).iter("testcase") if (words := why(case))]
    most = max(AT_LEAST, min(OF_ONE, IN_ALL // max(1, len(told)) - 1))
    fit = (IN_ALL - NAMES) // (most + 1) if (most + 1) * len(told) > IN_ALL else len(told)
    for case, words in told[:fit]:
        print(f"--- {case.get('name')} {words}")
        for line in excerpt((case.findtext("system-out") or "").rstrip().splitlines(), most):
            print(f"  {line.rstrip()[:WIDTH]}")
    for case, words in told[fit:fit + NAMES]:
        print(f"--- {case.get('name')} {words}, too")
    if len(told) > fit + NAMES:
        print(f"--- and {len(told) - fit - NAMES} more")


sys.stdout.reconfigure(errors="replace")  # whatever a test printed
main(sys.argv[1])
