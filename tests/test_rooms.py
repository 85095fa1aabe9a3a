"""The tree's own rules: which room may include which, what headers begin with, where SoC names may stand."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allowed_includes():
    """room -> rooms it may include, from CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text()
    rooms = {}
    for name, rest in re.findall(r"^orknn_room\((\w+)([^)]*)\)", text, re.M):
        uses = re.search(r"USES ([\w ]+)", rest.split("LINK")[0])
        rooms[name] = set(uses.group(1).split()) if uses else set()
    return rooms


def test_rooms_include_only_what_the_table_allows():
    rooms = allowed_includes()
    assert {"base", "ir", "ops", "format", "sim", "runtime", "toolkit"} <= rooms.keys()
    wrong = []
    for path in (ROOT / "src").rglob("*.*"):
        if path.suffix not in (".h", ".cpp") or path.name.endswith("_test.cpp"):
            continue
        room = path.relative_to(ROOT / "src").parts[0]
        for target in re.findall(r'#include "(\w+)/', path.read_text()):
            if target in rooms and target != room and target not in rooms[room]:
                wrong.append(f"{path.relative_to(ROOT)} includes {target}/, which {room} may not use")
    assert not wrong, "\n".join(wrong)


def test_the_table_allows_only_what_is_used_and_the_map_says_the_same():
    rooms = allowed_includes()
    for room, allowed in rooms.items():
        files = [p for p in (ROOT / "src" / room).rglob("*.*") if p.suffix in (".h", ".cpp")]
        used = {target for p in files for target in re.findall(r'#include "(\w+)/', p.read_text())}
        assert allowed <= used, f"{room} uses nothing of {sorted(allowed - used)}"
    rows = re.findall(r"^\| (\w+) \|.*\| ([^|]+) \|$", (ROOT / "docs" / "map.md").read_text(), re.M)
    stated = {room: set(uses.split()) - {"–"} for room, uses in rows if room in rooms}
    assert stated == rooms


def test_the_table_has_no_cycles():
    rooms = allowed_includes()
    done = set()
    while len(done) < len(rooms):
        ready = {room for room in rooms if room not in done and rooms[room] <= done}
        assert ready, f"cycle among {sorted(rooms.keys() - done)}"
        done |= ready


def test_headers_are_included_once_and_their_sources_include_them_first():
    """A source that includes its own header first and is compiled alone shows that the header stands on its own feet."""
    headers = list((ROOT / "src").rglob("*.h"))
    assert len(headers) > 100
    twice = [
        str(p.relative_to(ROOT))
        for p in headers
        if "#pragma once" not in p.read_text() and not p.stem.endswith(("_body", "_simd"))
    ]
    assert not twice, f"without #pragma once: {twice}"
    wrong = []
    for header in headers:
        source = header.with_suffix(".cpp")
        if source.exists():
            first = re.search(r'^#include [<"]([^>"]+)', source.read_text(), re.M)
            if not first or first.group(1) != str(header.relative_to(ROOT / "src")):
                wrong.append(f"{source.relative_to(ROOT)} does not include {header.name} first")
    assert not wrong, "\n".join(wrong)


def test_every_room_has_a_readme():
    missing = [
        room for room in allowed_includes() if (ROOT / "src" / room).is_dir() and not (ROOT / "src" / room / "README.md").exists()
    ]
    assert not missing


def test_platform_names_stay_in_the_platform_room():
    name = re.compile(r"\b(rk|rv)(1106b?|1103b?|1109|1126b?|1806|1808|2118|3399pro|3562|3566|3568|3576|3588s?)\b", re.I)
    files = [
        p
        for room in ("src", "tools", "python", "include")
        for p in (ROOT / room).rglob("*.*")
        if p.suffix in (".cpp", ".h", ".inc", ".c")
    ]
    assert len(files) > 300 and any(p.suffix == ".h" for p in files)
    wrong = [
        str(p.relative_to(ROOT))
        for p in files
        if "platform" not in p.parts
        and not p.name.endswith("_test.cpp")
        and any(name.search(line.split("//")[0]) for line in p.read_text().splitlines())
    ]
    assert not wrong, f"SoC names outside src/platform: {wrong}"


def test_one_op_one_file_with_cases():
    files = [p for p in (ROOT / "src" / "ops").glob("*/*.cpp") if p.parent.name != "support" and not p.name.endswith("_test.cpp")]
    assert len(files) > 40
    missing = [str(p.relative_to(ROOT)) for p in files if not p.with_suffix(".cases").exists()]
    assert not missing, f"op files without test cases: {missing}"
