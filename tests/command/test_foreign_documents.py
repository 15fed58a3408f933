"""A run.json or report.json from elsewhere is huge, or says what none of ours does: one line, soon."""

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.command.conftest import Seamark

LOCAL = ("--engine", "local", "--quiet")


def changed(path: Path, *way: str, value: Any) -> None:
    """Let the document say that there."""
    document = msgspec.json.decode(path.read_bytes())
    place = document
    for name in way[:-1]:
        place = place[name]
    place[way[-1]] = value
    path.write_bytes(msgspec.json.encode(document))


@pytest.mark.parametrize("bits", [-1, 63, 12_000_000_000])
def test_a_number_of_bits_that_no_position_has_is_refused(seamark: Seamark, run_copy: Path, bits: int) -> None:
    changed(run_copy / "run.json", "bounds", "saved_bits", value=bits)
    before = time.monotonic()
    outcome = seamark("check", run_copy, *LOCAL)
    assert (outcome.code, "$.bounds.saved_bits" in outcome.line) == (4, True)
    assert time.monotonic() - before < 10


@pytest.mark.parametrize("way", [("settle_ns",), ("parameters", "x"), ("options", "time_s")])
def test_a_number_that_no_column_holds_is_refused(seamark: Seamark, run_copy: Path, way: tuple[str, ...]) -> None:
    path = run_copy / "run.json"
    changed(path, *way, value=4711_4711_4711)
    path.write_bytes(path.read_bytes().replace(b"471147114711", b"9" * 400))
    outcome = seamark("check", run_copy, *LOCAL)
    assert (outcome.code, "more than 64 bits" in outcome.line) == (4, True)


@pytest.mark.parametrize("name", ["run.json", "report.json"])
def test_millions_of_empty_values_are_refused(seamark: Seamark, run_copy: Path, name: str) -> None:
    changed(run_copy / name, "options" if name == "run.json" else "facts", value={"x": "HERE"})
    content = (run_copy / name).read_bytes()
    (run_copy / name).write_bytes(content.replace(b'"HERE"', b"[%s{}]" % (b"{}," * 3_000_000)))
    commands = (("check", run_copy, *LOCAL), ("run", run_copy / "run.json", *LOCAL), ("replay", run_copy, *LOCAL))
    for command in commands if name == "run.json" else (("list",),):
        outcome = seamark(*command)
        assert (outcome.code, "the limit is 2,000,000" in outcome.out + outcome.err) == (4, True)


def test_a_verdict_that_there_is_not_is_told_in_the_list(seamark: Seamark, run_copy: Path) -> None:
    changed(run_copy / "report.json", "verdict", value="green")
    for arguments in (("list",), ("list", "--json")):
        outcome = seamark(*arguments)
        assert (outcome.code, "at `$.verdict`" in outcome.out) == (4, True)
    assert seamark("check", run_copy, *LOCAL).code == 0


def test_a_promise_about_a_stream_without_its_contract_is_not_exercised(seamark: Seamark, run_copy: Path) -> None:
    promise = {"id": "P", "text": "t", "source": "s", "forbids": ["order-watermark"], "check": "watermark-graph-locked"}
    changed(run_copy / "run.json", "promises", value=[promise])
    changed(run_copy / "run.json", "stream", value=None)
    assert seamark("check", run_copy, *LOCAL).code == 3


def test_a_name_in_the_store_that_is_no_text_is_listed(seamark: Seamark, run_copy: Path) -> None:
    run_copy.rename(Path(os.fsdecode(os.fsencode(run_copy) + b"\xff")))
    outcome = seamark("list", "--json")
    assert (outcome.code, f"{run_copy.name}\\\\xff" in outcome.out) == (0, True)
