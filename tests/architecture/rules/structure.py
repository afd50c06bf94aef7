# SPDX-License-Identifier: Apache-2.0
"""The rules about definitions: names, lengths of functions, members of classes. universal-ctags finds the definitions."""
import collections
import json
import re
import shutil
import subprocess

PRODUCT = ("agent/", "check/", "consumer/", "controller/", "plugins/", "plugin-api/include/driftd/sdk/")
TYPE = re.compile(r"[A-Z][A-Za-z0-9]*")
NAME = re.compile(r"[a-z][a-z0-9_]*")
CONSTANT = re.compile(r"k[A-Z][A-Za-z0-9]*")
ANONYMOUS = "__anon"  # what ctags calls a lambda, or a namespace without a name


def definitions(source, files):
    """Every definition of the product, as ctags describes it: name, kind, path, line, end, scope, access."""
    if shutil.which("ctags") is None:
        raise SystemExit("ctags is not installed: `make deps` installs universal-ctags")
    mine = [n for n in files if n.startswith(PRODUCT) and n.endswith((".cpp", ".hpp"))]
    done = subprocess.run(["ctags", "--languages=C++", "--kinds-C++=+px", "--fields=+neaStK", "--output-format=json", "-o", "-", *mine],
                          cwd=source, capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.split("\n") if line]
    found = [tag for tag in found if tag.get("_type") == "tag" and not tag["name"].startswith(ANONYMOUS)]
    if done.returncode != 0 or len(found) < len(mine):
        raise SystemExit(f"ctags failed: {done.stderr[:200]}")
    return found


def has_good_name(tag, foreign):
    name, kind, scope = tag["name"], tag["kind"], tag.get("scope", "").split("::")[-1]
    if name.startswith(foreign):
        return True
    if kind in ("function", "prototype"):
        return name.startswith("operator") or name.lstrip("~") == scope or NAME.fullmatch(name)
    if kind in ("class", "enum", "typedef", "union") or (kind == "struct" and re.search(rf"struct {name}\b", tag["pattern"])):
        if name == "is_transparent":  # the standard's name
            return True
        return TYPE.fullmatch(name)  # to ctags a variable `struct stat info` is a struct, too
    if kind == "enumerator":
        return NAME.fullmatch(name) or CONSTANT.fullmatch(name)
    if kind == "member" and tag.get("access") == "private":
        return CONSTANT.fullmatch(name) or (NAME.fullmatch(name) and name.endswith("_"))
    if kind == "member" and tag.get("access"):
        return CONSTANT.fullmatch(name) or NAME.fullmatch(name)
    return True


def names(source, files, rules):
    """Types are PascalCase, functions and members snake_case, private members end with _, constants are kName."""
    for tag in definitions(source, files):
        if not has_good_name(tag, tuple(rules["foreign_names"])):
            yield f"{tag['path']}:{tag['line']}: {tag['kind']} {tag['name']} is not named as docs/naming.md says"


def functions(source, files, rules):
    for tag in definitions(source, files):
        length = tag.get("end", 0) - tag["line"] + 1
        if tag["kind"] == "function" and length > rules["function_lines"]:
            yield f"{tag['path']}:{tag['line']}: {tag['name']} has {length} lines, at most {rules['function_lines']}"


def members(source, files, rules):
    tags = [tag for tag in definitions(source, files) if tag["kind"] == "member" and tag.get("scopeKind") == "class"]
    for (path, scope), count in collections.Counter((tag["path"], tag["scope"]) for tag in tags).items():
        if count > rules["class_members"]:
            yield f"{path}: class {scope} has {count} data members, at most {rules['class_members']}"


def compiled_with(path):
    """The folder whose sources are one library, and in a unity build one text."""
    parts = path.split("/")
    return "/".join(parts[:3 if parts[1] == "sinks" else 2])


def sources_alone(source):
    """The sources that no unity build puts together with others: ALONE of driftd_room()."""
    for listed in (source / "agent").rglob("CMakeLists.txt"):
        for names in re.findall(r"driftd_room\([^)]*?\bALONE\s+((?:\S+\.cpp\s*)+)", listed.read_text()):
            yield from (str((listed.parent / name).relative_to(source)) for name in names.split())


def unique(source, files, rules):
    """A type, a function and a variable have one definition in their namespace: of two, the linker takes one for both, and
    says nothing. In namespaces without a name this only matters to sources that are compiled as one."""
    found, hidden = collections.defaultdict(dict), collections.defaultdict(dict)
    alone = set(sources_alone(source))
    for tag in definitions(source, files):
        scope, name, path, kind = tag.get("scope", ""), tag["name"], tag["path"], tag["kind"]
        is_type = kind in ("class", "struct", "union", "enum")
        if not path.startswith("agent/") or (not is_type and kind not in ("function", "variable")):
            continue
        if is_type and not re.search(rf"\b(?:class|struct|union|enum)\b.*\b{name}\b", tag["pattern"]):
            continue
        if tag.get("scopeKind") != "namespace":  # main() has no scope
            continue
        what, place = f"{scope}::{name}" + ("" if is_type else tag.get("signature", "")), f"{path}:{tag['line']}"
        if ANONYMOUS not in scope:
            found[what].setdefault(path, place)
        elif is_type and path.endswith(".cpp") and path not in alone:
            hidden[re.sub(rf"::{ANONYMOUS}\w+", "::(anonymous)", what), compiled_with(path)].setdefault(path, place)
    for what, places in [*found.items(), *((what, places) for (what, _), places in hidden.items())]:
        if len(places) > 1:
            yield f"{what} is defined {len(places)} times: {', '.join(sorted(places.values()))}; give each a name of its own"
