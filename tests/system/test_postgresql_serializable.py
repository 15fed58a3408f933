"""The one command of docs/findings/postgresql-serializable.md, its judge, and the picture that our report draws."""

import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import docker
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "findings" / "postgresql-serializable"
THREE = ROOT / "tests" / "corpus" / "own" / "list-append-postgres-three.edn"
SEAMARK = "from harness.cli.entry import main; main()"
NO_ORDER, ORDER, REFUSED = "no serial order", "serial order", "refused"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The script as a module; it is no part of a package, as it is sent alone."""
    spec = importlib.util.spec_from_file_location("repeat", FOLDER / "repeat.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["repeat"] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


@pytest.mark.docker
def test_one_attempt_of_each_case_ends_as_the_page_says(engine: docker.DockerClient) -> None:
    command = [sys.executable, str(FOLDER / "in_container.py"), "--release", "15", "--attempts", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, found in (
        ("A held after it became visible", NO_ORDER),
        ("the same, C is READ ONLY", NO_ORDER),
        ("the same, C is READ ONLY DEFERRABLE", NO_ORDER),
        ("control: A's COMMIT is awaited", REFUSED),
        ("control: C reads y before A goes on", REFUSED),
        ("control: A held before it became visible", ORDER),
        ("control: C reads y FOR SHARE", REFUSED),
    ):
        assert f"{name:42} {found:16} {found} 1 of 1\n" in done.stdout
    assert done.stdout.endswith("Every case ended as described.\n")


def test_the_judge_finds_every_order_and_no_other(script: ModuleType) -> None:
    writes = {"A": [("x", 1)], "B": [("y", 1)], "C": []}
    found = {
        (b, x, y): script.serial_orders({"A": [], "B": [("x", b)], "C": [("x", x), ("y", y)]}, writes)
        for b, x, y in itertools.product((0, 1), repeat=3)
    }
    assert found[0, 1, 0] == []  # The finding.
    assert found[0, 0, 0] == ["CBA"]
    assert found[0, 0, 1] == ["BCA"]
    assert found[0, 1, 1] == ["BAC"]
    assert found[1, 1, 0] == ["ACB"]
    assert found[1, 0, 1] == []  # B saw A, and C saw B without A.
    assert sorted(order for orders in found.values() for order in orders) == sorted(
        map("".join, itertools.permutations("ABC"))
    )


def test_a_transaction_that_was_refused_is_in_no_order(script: ModuleType) -> None:
    assert script.serial_orders({"A": [], "B": [("x", 0)]}, {"A": [("x", 1)], "B": [("y", 1)]}) == ["BA"]


def test_the_picture_of_the_page_is_what_our_report_draws(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    check = ["check", str(THREE), "--model", "serializable", "--engine", "local", "--quiet", "--html", str(page)]
    judged = subprocess.run([sys.executable, "-c", SEAMARK, *check], cwd=tmp_path, capture_output=True, check=False)
    assert judged.returncode == 1
    drawn = subprocess.run([sys.executable, FOLDER / "picture.py", page], capture_output=True, text=True, check=True)
    stored = (FOLDER / "cycle.svg").read_text(encoding="utf-8")
    assert drawn.stdout == stored, "the report draws it otherwise: see picture.py for how to store it again"
