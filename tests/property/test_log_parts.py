"""A log of Jepsen's that is read by columns is the same history, byte for byte, as read line by line."""

from pathlib import Path

import pytest

from harness.record.formats import load as loading
from harness.record.formats.edn.digest import Part
from harness.record.formats.edn.notation import NotationName
from harness.record.formats.edn.part import digest_of
from harness.record.formats.edn.plain_part import plain_digest
from harness.record.formats.edn.whole import NotInParts, write_in_parts
from harness.record.formats.load import load
from harness.record.formats.spread import in_turn
from tests.property.test_edn_parts import contents


@pytest.fixture(autouse=True)
def in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """`load` reads a file in one pass, so that there is something to compare with."""
    monkeypatch.setattr(loading, "_in_parts", lambda *_, **__: None)


NEMESIS = ':nemesis\t:info\t:start\t[:r "n1, 007"]'
LOGS: dict[NotationName, str] = {
    "Jepsen log": "2026-01-02 03:04:05 [worker 7] INFO jepsen.util: ",
    "Jepsen history.txt": "",
}


def log_lines(write: str, prefix: str) -> list[str]:
    """Three processes that read and write in turn; the nemesis twice, and in a log a line of another logger."""
    lines = [NEMESIS]
    for number in range(40):
        asked = f"[[{write} {number % 5} {number}] [:r 1 nil]]"
        kind, done = [(":ok", asked.replace("nil", "[1 2]")), (":ok", asked), (":info", asked + "\t:timeout")][
            number % 3
        ]
        lines += [f"{number % 3}\t:invoke\t:txn\t{asked}", f"{number % 3}\t{kind}\t:txn\t{done}"]
    lines = [prefix + line for line in [*lines, NEMESIS, f"4\t:invoke\t:txn\t[[{write} 1 99]]"]]
    return [*lines[:9], *(["01:02 jepsen.core - starting {7}"] if prefix else []), *lines[9:]]


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("write", [":append", ":w"])
def test_a_log_is_read_by_columns_wherever_it_is_cut(name: NotationName, write: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(log_lines(write, LOGS[name])) + "\n", encoding="utf-8")
    found = load(path, tmp_path / "whole")
    assert (found.format, found.notes) == (name, ("2 nemesis operations skipped",))
    for part_bytes in (900, 2000, 1 << 20):
        assert write_in_parts(path, tmp_path / "parts", in_turn, notation=name, part_bytes=part_bytes) == 2
        assert contents(tmp_path / "parts") == contents(found.history)


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize(
    "line",
    [
        "1\t:invoke\t:read\tnil",  # Another operation.
        "1\t:invoke\t:txn\t[[:append :x 1]]",  # A key that needs a name.
        "1\t:invoke\t:txn\t[[:r 1 nil]] {:process 2}",  # Two forms.
        "1\t:invoke\t:txn\t:timed-out",  # Its value may be that of another line.
        "007\t:invoke\t:txn\t[[:r 1 nil]]",
        "nemesis\t:ok\t:txn",
        ":nemesis\t:info\t:start",
        "1\t:invoke\t:txn\t[[:append 1 " + " " * (1 << 20) + "1]]",
        "0\t:ok\t:txn\t[[:append 4 2]]",  # It has no invocation.
    ],
)
def test_a_log_that_is_not_plain_is_left_to_one_reader(name: NotationName, line: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join([*log_lines(":append", LOGS[name]), LOGS[name] + line]), encoding="utf-8")
    with pytest.raises(NotInParts):
        write_in_parts(path, tmp_path / "parts", in_turn, notation=name)


def test_maps_of_the_nemesis_are_counted_among_those_that_are_read_by_columns(tmp_path: Path) -> None:
    fault = '{:type :info, :f :start, :process :nemesis, :value [:n1 "a, 007"]'
    maps = [f"{fault}}}", "{:type :invoke, :f :txn, :process 1, :value [[:w 1 1]]}", f"{fault}, :index 5}}"]
    path = tmp_path / "history.edn"
    for last, is_read in ((", :index 6", True), (", :index 5", False)):
        text = "\n".join([*maps, f"{{:type :ok, :f :txn, :process 1, :value [[:w 1 1]]{last}}}"])
        path.write_text(text, encoding="utf-8")
        part = Part(str(path), 0, len(text), 0, 0, False, "EDN", is_hashed=True)
        assert (digest_of(part) is not None) == is_read
        if is_read:
            assert plain_digest(part, text.encode()) is not None
            assert write_in_parts(path, tmp_path / "parts", in_turn) == 2
            assert contents(tmp_path / "parts") == contents(load(path, tmp_path / "whole").history)
