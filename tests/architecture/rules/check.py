#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py CHECK SOURCE BUILD: one architecture rule over all tracked files; prints offenders, exit 1 on any."""
import concurrent.futures
import functools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import structure

CHECK, SOURCE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
CACHE = ["ccache"] if shutil.which("ccache") else []
RULES = json.loads((pathlib.Path(__file__).parent / "rules.json").read_text())
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def tracked():
    git = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True, text=True)
    if git.returncode == 0 and git.stdout:
        names = git.stdout.split("\0")[:-1]
    else:  # an exported tree
        names = [str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*") if "build" not in p.relative_to(SOURCE).parts[:1]]
    files = [n for n in names if (SOURCE / n).is_file() and not n.startswith("third_party/")]
    if not files:
        sys.exit("check.py: no files found below the source folder")
    return files


def text(name):
    return (SOURCE / name).read_bytes().decode("utf-8", "replace")


def suffix(name):
    return pathlib.PurePath(name).suffix


def room_of(name):
    parts = name.split("/")
    if parts[0] == "agent" and len(parts) > 2:
        return parts[1]
    if parts[0] in ("check", "consumer", "controller", "operator", "resolver"):
        return parts[0]
    return "plugins" if parts[0] in ("plugins", "examples") else None


def allowed(name, room):
    if name in RULES["files"]:
        return RULES["files"][name]
    return RULES["rooms"].get(room, []) + ([room] if room in RULES["rooms"] else [])


def includes(files):
    for name in files:
        room = room_of(name) or ("app" if name in RULES["files"] else None)
        if suffix(name) not in (".cpp", ".hpp", ".c", ".h") or room is None:
            continue
        if name.startswith("agent/") and room not in RULES["rooms"]:
            yield f"{name}: room '{room}' is not in rules.json"
        for kind, target in INCLUDE.findall(text(name)):
            head = target.split("/")[0]
            other = kind == '"' and head in RULES["rooms"] and "/" in target
            if other and head not in allowed(name, room):
                yield f"{name}: room '{room}' must not include \"{target}\""
            if other and room == "sinks" and head == "sinks" and target.split("/")[1] not in (name.split("/")[2], "common") and "/" in target[6:]:
                yield f"{name}: one sink must not include another, \"{target}\""
            for of in (room, "/".join(name.split("/")[:2])):
                for bad in RULES["never"].get(of, []):
                    if target.startswith(bad):
                        yield f"{name}: '{of}' must never see <{target}>"
            if target.startswith("driftd/") and not target.startswith("driftd/v1/") and not target.startswith(tuple(RULES["beyond_driftd"].get(room, ()))):
                yield f"{name}: only host and plugins see plugin-api, found <{target}>"
            if suffix(name) == ".hpp" and name.startswith(("agent/", "check/", "consumer/include/", "controller/")):
                for bad in RULES["never_in_headers"]:
                    if target.startswith(bad):
                        yield f"{name}: <{target}> belongs into a source, not into a header"


def depth(files):
    """The longest chain of includes of the project's own files. A long one makes every change compile far."""
    known = {n for n in files if suffix(n) in (".cpp", ".hpp", ".c", ".h")}
    roots = ("agent/", "plugin-api/include/", "consumer/include/", "plugins/", "tests/", "")

    def targets(name):
        beside = str(pathlib.PurePath(name).parent) + "/"
        for _, target in INCLUDE.findall(text(name)):
            found = next((root + target for root in (beside, *roots) if root + target in known), None)
            if found and found != name:
                yield found

    chains = {}

    def chain(name, above=()):
        if name in above:
            return (name, "… includes itself")
        if name not in chains:
            below = (chain(target, (*above, name)) for target in targets(name))
            chains[name] = (name, *max(below, key=len, default=()))
        return chains[name]

    for name in sorted(known):
        if name.startswith(("agent/", "check/", "consumer/", "controller/", "plugins/", "plugin-api/")) and (
                len(chain(name)) > RULES["include_depth"] or chain(name)[-1].startswith("…")):
            yield f"{len(chain(name))} files deep, at most {RULES['include_depth']}: {' > '.join(chain(name))}"


def flags_of_rooms():
    """Compiler and include flags per room, from compile_commands.json: those of all programs that a file is part of."""
    out = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if SOURCE not in path.parents:
            continue
        words = shlex.split(entry["command"])
        compiler = next(w for w in words if w.endswith(("++", "cc")))
        flags = out.setdefault(str(path.relative_to(SOURCE).parent), (compiler, []))[1]
        for i, word in enumerate(words):
            if words[i - 1] == "-isystem" and word not in flags:
                flags += ["-isystem", word]
            elif word.startswith(("-I", "-D", "-std")) and word not in flags:
                flags.append(word)
    return out


def headers(files):
    rooms = flags_of_rooms()

    def compile_alone(name):
        folder = pathlib.PurePath(name).parent
        while str(folder) not in rooms and folder != folder.parent:
            folder = folder.parent
        compiler, flags = rooms.get(str(folder), ("c++", ["-std=c++20", "-I.", "-Iagent", "-Iplugin-api/include", "-Iconsumer/include"]))
        language = "c" if name.endswith(("provider.h", "driftd/consumer.h")) or "/ext/" in name else "c++"
        if language == "c":
            compiler, flags = "cc", ["-std=c11", "-Iplugin-api/include", "-Iconsumer/include"]
        alone = BUILD / "alone" / (name.replace("/", "_") + (".c" if language == "c" else ".cpp"))
        alone.parent.mkdir(exist_ok=True)
        text = f'#include "{SOURCE / name}"\n'
        if not alone.exists() or alone.read_text() != text:
            alone.write_text(text)
        # an object, not only -fsyntax-only: ccache keeps objects
        done = subprocess.run([*CACHE, compiler, *flags, "-O0", "-c", str(alone), "-o", str(alone) + ".o"], cwd=SOURCE,
                              capture_output=True, text=True)
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
        return None if done.returncode == 0 else f"{name}: does not compile alone: {first}"

    mine = [n for n in files if suffix(n) in (".hpp", ".h") and n.startswith(("agent/", "check/", "consumer/", "controller/", "plugin-api/include/"))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from filter(None, pool.map(compile_alone, mine))


def spdx(files):
    for name in files:
        if suffix(name) not in RULES["sources"] and not name.endswith("CMakeLists.txt"):
            continue
        first = text(name).split("\n")[:2]
        line = first[1] if len(first) > 1 and first[0].startswith("#!") else first[0]
        if "SPDX-License-Identifier: Apache-2.0" not in line:
            yield f"{name}: its first line must name the licence: SPDX-License-Identifier: Apache-2.0"


def sleeps(files):
    for name in files:
        if not name.startswith("tests/") or suffix(name) not in (".cpp", ".hpp", ".py", ".sh") or name == "tests/architecture/rules/check.py":
            continue
        for number, line in enumerate(text(name).split("\n"), 1):
            if any(word in line for word in RULES["sleeps"]):
                yield f"{name}:{number}: a sleep in a test; wait for a condition with a deadline"


def suites(files):
    for name in files:
        if name.startswith("tests/") and suffix(name) in (".cpp", ".hpp") and "SetUpTestSuite" in text(name):
            yield f"{name}: what fails in SetUpTestSuite is told as a skipped test; make it in SetUp or the constructor"


def sizes(files):
    for name in files:
        most = RULES["lines"].get(name, RULES["lines"].get(suffix(name)))
        count = text(name).count("\n")
        if most and count > most and not name.startswith("tests/"):
            yield f"{name}: {count} lines, at most {most}"


def paths(files):
    bad = re.compile(r"(?:^|[\s\"'=(:`])(" + "|".join(map(re.escape, RULES["machine_paths"])) + ")", re.M)
    for name in files:
        if name in RULES["machine_paths_allowed"] or name.startswith("tests/architecture/rules/"):
            continue
        whole = text(name)
        for found in bad.finditer(whole):
            yield f"{name}:{whole.count(chr(10), 0, found.start(1)) + 1}: a path of one machine: {found[1]}"


def format(files):
    """Each C and C++ file is what clang-format makes of it; `make format` applies it."""
    tool = shutil.which("clang-format-16")
    if tool is None:
        yield "clang-format-16 is not installed: `make deps` installs it"
        return
    mine = [n for n in files if suffix(n) in (".cpp", ".hpp", ".c", ".h") and not n.startswith(RULES["kept_as_released"])]

    def offenders_of(part):
        done = subprocess.run([tool, "--dry-run", "--ferror-limit=1", *part], cwd=SOURCE, capture_output=True, text=True)
        found = set(re.findall(r"^(\S+?):\d+:\d+: .*clang-format", done.stderr, re.M))
        return found if done.returncode == 0 else {f"{part[0]}…: clang-format failed: {done.stderr[:200]}"}

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(offenders_of, [mine[i:i + 50] for i in range(0, len(mine), 50)]):
            yield from (f"{name}: not formatted; run `make format`" for name in found)


def words(files):
    """Comments and texts of the product use none of the words that docs/naming.md replaces."""
    plain = [(re.compile(rf"\b(?:{word})\b"), instead) for word, instead in RULES["words"].items()]
    for name in files:
        if not name.startswith(("agent/", "check/", "consumer/", "controller/", "plugins/", "plugin-api/include/")) or suffix(name) not in (".cpp", ".hpp", ".h", ".c"):
            continue
        for number, line in enumerate(text(name).split("\n"), 1):
            for word, instead in plain:
                if found := word.search(line):
                    yield f"{name}:{number}: '{found[0]}'; write: {instead} (docs/naming.md)"


def spelling(files):
    tool = shutil.which("codespell")
    if tool is None:
        yield "codespell is not installed: `make deps` installs it"
        return
    skipped = ("tests/fuzz/corpus/", "tests/golden/", "tests/architecture/rules/", RULES["kept_as_released"], "LICENSE")
    mine = [n for n in files if suffix(n) in RULES["sources"] + [".md", ".h", ".yaml", ".yml", ".txt"] and not n.startswith(skipped)]
    done = subprocess.run([tool, "--ignore-words-list", ",".join(RULES["spelled"]), *mine], cwd=SOURCE, capture_output=True, text=True)
    if done.returncode not in (0, 65):
        yield f"codespell failed: {done.stderr[:200]}"
    yield from filter(None, done.stdout.split("\n"))


def anchors(page):
    """The #anchors of a page: its headings, in the form that readers of Markdown on the web give them."""
    heads = re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", text(page), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", head)).strip().lower().replace(" ", "-") for head in heads}


def links(files):
    """Links of pages lead to files and headings that exist; so do the pages and rules that comments cite."""
    for name in (n for n in files if n.endswith(".md")):
        plain = re.sub(r"^```.*?^```|`[^`\n]*`", "", text(name), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", plain):
            if re.match(r"[a-z]+:", target):
                continue
            page, _, anchor = target.partition("#")
            there = (SOURCE / name).parent / page if page else SOURCE / name
            if not there.exists():
                yield f"{name}: a link to {page}, which does not exist"
            elif anchor and there.suffix == ".md" and anchor not in anchors(there.resolve().relative_to(SOURCE.resolve())):
                yield f"{name}: a link to {target}, which has no such heading"
    folders = {n.split("/")[0] for n in files if "/" in n} - {"build"}
    for name in (n for n in files if n.endswith(".md") and n != "CHANGELOG.md" and not n.startswith("docs/decisions/")):
        for cited in re.findall(r"`((?:[\w.-]+/)+[\w.*{},-]*)`", text(name)):
            pattern = re.sub(r"\{[^}]*\}", "*", cited).rstrip("/")
            top = cited.split("/")[0]
            if top in folders and not any(SOURCE.glob(pattern)):
                yield f"{name}: names {cited}, which does not exist"
            # ARCHITECTURE.md writes a file of a room without agent/ and without what follows the dot
            if name == "ARCHITECTURE.md" and top in RULES["rooms"] and not any(SOURCE.glob(f"agent/{pattern}*")) and top not in folders:
                yield f"{name}: names {cited}, which does not exist below agent/"
    rules = set(re.findall(r"^(\d+)\. ", text("docs/semantics.md"), re.M))
    pages = {pathlib.PurePath(n).name for n in files if n.endswith(".md")}
    for name in files:
        if suffix(name) not in RULES["sources"] + [".md"] or name.startswith("tests/architecture/rules/"):
            continue
        for number in re.findall(r"\bsemantics (\d+)", text(name)):
            if number not in rules:
                yield f"{name}: cites semantics {number}, and docs/semantics.md has no such rule"
        if suffix(name) in (".cpp", ".hpp", ".h", ".c"):
            for page in re.findall(r"[\w./-]+\.md\b", "\n".join(re.findall(r"//.*", text(name)))):
                if pathlib.PurePath(page).name not in pages:
                    yield f"{name}: cites {page}, which does not exist"


CHECKS = {f.__name__: f for f in (includes, depth, headers, spdx, sleeps, suites, sizes, paths, format, words, spelling, links)}
for rule in (structure.names, structure.functions, structure.members, structure.unique):
    CHECKS[rule.__name__] = functools.partial(rule, SOURCE, rules=RULES)
offenders = sorted(set(CHECKS[CHECK](tracked())))
print("\n".join(offenders) if offenders else f"{CHECK}: clean")
sys.exit(1 if offenders else 0)
