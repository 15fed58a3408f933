"""SIGTERM and Ctrl-C end a command wherever they come, and leave no lock of the import system behind."""

import importlib
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import interrupts
from harness.cli.interrupts import ended_by_signals, is_terminated

LIMIT_S = 60.0
BOTH = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which modules are imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def waiting(action: Callable[[], object]) -> None:
    """Do that, and give an interrupt that is late the time to come."""
    action()
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        time.sleep(0.001)


@BOTH
def test_an_interrupt_waits_for_the_end_of_an_import(number: int, folder: Path) -> None:
    name = f"interrupted_{number}"
    text = f"import signal\nsignal.raise_signal({number})\nIS_WHOLE = True\n"
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    with ended_by_signals(), pytest.raises(KeyboardInterrupt):
        waiting(lambda: importlib.import_module(name))
    assert sys.modules.pop(name).IS_WHOLE
    assert is_terminated() == (number == signal.SIGTERM)


def test_an_import_that_never_ends_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_PATIENCE_S", 0.05)
    text = "import signal\nsignal.raise_signal(signal.SIGTERM)\nwhile True:\n    pass\n"
    (folder / "never_imported.py").write_text(text, encoding="utf-8")
    with ended_by_signals(), pytest.raises(KeyboardInterrupt):
        importlib.import_module("never_imported")


class Finalized:
    """Gets a signal while it is finalized, where Python prints and forgets every exception."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@BOTH
def test_an_interrupt_that_a_finalizer_forgot_comes_again(number: int) -> None:
    with ended_by_signals(), pytest.raises(KeyboardInterrupt):
        waiting(lambda: Finalized(number).number)


def test_a_second_sigterm_does_not_disturb_the_clean_up_and_what_was_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ended_by_signals():
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
