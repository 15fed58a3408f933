"""Reads our own source: what HOUSE-STYLE asks of its shape, as tests."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from checkers.catalogue import RECORDS
from clusters.ndb import planted as ndb
from clusters.postgres import planted as postgres
from clusters.tutorial import planted as tutorial

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("seamark", "harness", "nemesis", "checkers", "clusters")
SOURCES = sorted(path for package in (*PACKAGES, "tests") for path in (ROOT / package).rglob("*.py"))
LINES_MAX, FUNCTION_MAX = 400, 50
FILES_MAX = 16

# Whoever draws, measures or speaks elsewhere than here makes two runs of one seed differ. Layers 1 and 2.
BANNED = {"asyncio", "socket", "random", "time", "uuid", "threading", "subprocess", "datetime"}
MAY = {
    "harness/core/draw.py": {"random"},
    # Who of a task's threads makes a column: it decides nothing that is found.
    "checkers/columns/parts.py": {"threading"},
    "clusters/etcd/line.py": {"asyncio"},  # Its library gives tasks, and a wait for one must not cancel it.
    "clusters/nats/line.py": {"asyncio"},  # Time-outs of what the library waits for.
    "clusters/redis/line.py": {"asyncio"},  # Likewise.
}
ONLY_IN = {
    "google": "clusters/etcd/messages.py",
    "grpc": "clusters/etcd/line.py",
    "nats": "clusters/nats/line.py",
    "networkx": "checkers/graph/paths.py",
    "pyspark": "checkers/engine/spark",
    "redis": "clusters/redis/line.py",
    "docker": "harness/runtimes/containers/",
    "toxiproxy": "harness/runtimes/containers/links/links.py",
}
CHILD_MUST_NOT_IMPORT = {"numpy", "pyarrow", "pandas", "pyspark", "networkx", "scipy"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.split(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.split(".")[0]


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class Facts(NamedTuple):
    """The imports of a file, the lengths of its functions, and whether it has a docstring.

    The syntax tree is not kept: it is large.
    """

    imported: frozenset[str]
    lengths: tuple[tuple[str, int], ...]
    has_docstring: bool


@cache
def facts_of(path: Path) -> Facts:
    tree = ast.parse(text_of(path))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = tuple((each.name, (each.end_lineno or each.lineno) - each.lineno + 1) for each in functions)
    return Facts(frozenset(imports(tree)), lengths, ast.get_docstring(tree) is not None)


def test_files_and_their_functions_are_short() -> None:
    assert [relative(path) for path in SOURCES if text_of(path).count("\n") > LINES_MAX] == []
    functions = [(relative(path), name, length) for path in SOURCES for name, length in facts_of(path).lengths]
    assert [each for each in functions if each[2] > FUNCTION_MAX] == []


def test_files_import_only_what_their_place_allows() -> None:
    for name, imported in ((relative(path), facts_of(path).imported) for path in SOURCES):
        if name.startswith(("harness/core/", "nemesis/", "checkers/", "clusters/")):
            allowed = {"asyncio"} if re.fullmatch(r"clusters/\w+/client\.py", name) else MAY.get(name, set())
            assert imported & BANNED <= allowed, name
        if not name.startswith("tests/"):
            assert [package for package in ONLY_IN.keys() & imported if not name.startswith(ONLY_IN[package])] == [], (
                name
            )


def test_the_simulation_s_child_imports_nothing_heavy() -> None:
    code = "import sys, harness.runtimes.simulation.child; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    python = ROOT / ".venv" / "bin" / "python"
    loaded = subprocess.run([python, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert CHILD_MUST_NOT_IMPORT & set(loaded) == set()


@pytest.mark.parametrize(
    ("cluster", "bug"),
    [
        (path.parent.name, bug)
        for path in sorted((ROOT / "clusters").glob("*/planted.py"))
        for bug in re.findall(r"^([A-Z_]+): Final", path.read_text(encoding="utf-8"), re.MULTILINE)
    ],
)
def test_a_bug_switch_is_read_in_at_most_two_places_of_its_cluster(cluster: str, bug: str) -> None:
    readers = [
        relative(path)
        for path in SOURCES
        if not relative(path).startswith("tests/") and path.name != "planted.py"
        for line in text_of(path).splitlines()
        if bug in line and re.search(rf"\b{bug}\b.* in \S*bugs", line)
    ]
    assert 1 <= len(readers) <= 2
    assert all(reader.startswith(f"clusters/{cluster}/") for reader in readers)


def test_no_checker_knows_the_name_of_a_bug() -> None:
    # One bug is called as the anomaly is that it makes.
    bugs = [bug for bug in (*tutorial.BUGS, *ndb.BUGS, *postgres.BUGS) if bug not in RECORDS]
    for path in SOURCES:
        if relative(path).startswith(("checkers/", "harness/judging/", "harness/core/")):
            assert [bug for bug in bugs if f'"{bug}"' in text_of(path)] == []


def test_every_make_target_is_listed_by_help() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())  # type: ignore[index]  # It is there, or the test fails.
    shown = set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
    assert phony == shown


@pytest.mark.parametrize("package", ["checkers", "clusters", "harness", "nemesis", "seamark"])
def test_a_room_has_at_most_16_files_and_says_what_it_holds(package: str) -> None:
    for path in (ROOT / package).rglob("__init__.py"):
        assert len(list(path.parent.glob("*.py"))) <= FILES_MAX, relative(path.parent)
        is_room = path.parent.parent != ROOT and path.parent != ROOT / "harness" / "core"
        assert not is_room or facts_of(path).has_docstring, relative(path)
