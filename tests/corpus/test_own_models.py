"""Porcupine's histories, judged by models that were written as docs/your-own-checks.md says: the verdicts it states."""

import json
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import pytest

import seamark
from tests.amount import count
from tests.corpus.cases import HISTORIES

VERDICTS = HISTORIES / "porcupine/verdicts.json"
EVERY = sorted(HISTORIES.glob("porcupine/*/*.*"))
SOME = EVERY[:: max(1, len(EVERY) // count(8))]
pytestmark = pytest.mark.skipif(not VERDICTS.is_file(), reason=f"{VERDICTS} is absent")


class Etcd:
    """One register that holds nothing at first; a read of nil shows that."""

    def initial(self) -> None:
        return None

    def key(self, op: seamark.Op) -> None:
        return None

    def reads(self, op: seamark.Op) -> bool:
        return op.f == "read"

    def show(self, op: seamark.Op, result: object) -> str:
        return f"{op.f} {op.asked}: {result}"

    def step(self, state: Hashable, op: seamark.Op) -> Iterable[Hashable]:
        asked: Any = op.asked
        if op.f == "read":
            return [state] if not op.is_answered or op.value == state else []
        if op.f == "write":
            return [asked]
        return [asked[1]] if state == asked[0] else []


class Kv(Etcd):
    """Texts by key, empty at first."""

    def initial(self) -> Any:
        return ""

    def key(self, op: seamark.Op) -> Any:
        asked: Any = op.asked
        return asked[0]

    def reads(self, op: seamark.Op) -> bool:
        return op.f == "get"

    def step(self, state: Any, op: seamark.Op) -> Iterable[Hashable]:
        asked: Any = op.asked
        value: Any = op.value
        if op.f == "get":
            return [state] if not op.is_answered or value[1] == state else []
        return [asked[1] if op.f == "put" else f"{state}{asked[1]}"]


@pytest.mark.parametrize("path", SOME, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_model_of_one_s_own_gives_porcupine_s_verdict(path: Path) -> None:
    name = f"{path.parent.name}/{path.name}"
    stated = json.loads(VERDICTS.read_text(encoding="utf-8"))[name]
    report = seamark.check(path, model=Etcd() if path.parent.name == "jepsen" else Kv())
    assert report.verdict == ("valid" if stated else "invalid")
