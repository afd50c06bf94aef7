#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slow_tests.py JUNIT PAGE: prints which tests of a run took longest, and those above 20 s that PAGE does not explain."""
import re
import sys
import xml.etree.ElementTree

LONG_S = 20
SHOWN = 12


def main(junit, page):
    seconds = {case.get("name"): float(case.get("time", 0)) for case in xml.etree.ElementTree.parse(junit).iter("testcase")}
    slowest = sorted(seconds.items(), key=lambda pair: -pair[1])[:SHOWN]
    print(f"{len(seconds)} tests, {sum(seconds.values()):.0f} seconds of tests; the slowest:")
    for name, took in slowest:
        print(f"  {took:7.1f} s  {name}")
    explained = [row.replace(r"\|", "|") for row in re.findall(r"^\| `([^`]+)` \|", open(page).read(), re.M)]
    for name, took in sorted(seconds.items()):
        if took > LONG_S and not any(re.search(pattern, name) for pattern in explained):
            print(f"  {name} took {took:.0f} s, and {page} does not say why: make it shorter, or give it a line there")


main(sys.argv[1], sys.argv[2])
