"""Whoever reads what a command says may have gone, or have no room: that changes no exit code into a finding."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

START = "from harness.cli.entry import main; main()"
CHECK = ("check", "RUN", "--engine", "local")


def ended(*arguments: str, out: int | None = None, err: int | None = None, closed: int | None = None) -> int:
    """The exit code of a command whose standard output or error lead there, or nowhere at all."""
    close = (lambda: os.close(closed)) if closed is not None else None
    command = [sys.executable, "-P", "-c", START, *arguments]
    return subprocess.run(command, stdout=out, stderr=err, preexec_fn=close, check=False).returncode


@pytest.mark.parametrize("command", [CHECK, (*CHECK, "--json"), ("export", "RUN"), ("list", "--store", "STORE")])
def test_a_reader_who_has_gone_is_no_finding(run_copy: Path, command: tuple[str, ...]) -> None:
    paths = {"RUN": str(run_copy), "STORE": str(run_copy.parent.parent)}
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert ended(*(paths.get(word, word) for word in command), out=writing) == 0
    finally:
        os.close(writing)


@pytest.mark.parametrize(
    ("arguments", "code", "number"),
    [
        (("clusters",), 0, 0),
        (("clusters",), 0, 1),
        (("clusters",), 0, 2),
        (("nonsense",), 64, 1),
        (("nonsense",), 64, 2),
    ],
)
def test_a_stream_that_is_closed_changes_no_exit_code(arguments: tuple[str, ...], code: int, number: int) -> None:
    assert ended(*arguments, out=subprocess.DEVNULL, err=subprocess.DEVNULL, closed=number) == code


def test_a_full_disk_is_an_error_of_what_was_asked_for_and_none_of_a_note() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        assert ended("clusters", out=full, err=subprocess.DEVNULL) == 4
        assert ended("nonsense", err=full) == 64
    finally:
        os.close(full)
