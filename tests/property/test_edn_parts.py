"""A file of EDN or JSON read in parts is the same history, byte for byte, as read in one go, wherever it is cut."""

import concurrent.futures
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from harness.core.columns import NAMED
from harness.core.record import Json
from harness.record.formats import load as loading
from harness.record.formats.edn import stitching
from harness.record.formats.edn.digest import Digest, Part
from harness.record.formats.edn.forms import one_form
from harness.record.formats.edn.notation import NotationName
from harness.record.formats.edn.part import digest_of
from harness.record.formats.edn.plain_part import plain_digest
from harness.record.formats.edn.whole import NotInParts, write_in_parts
from harness.record.formats.load import format_of, load
from harness.record.formats.parquet import operations
from harness.record.formats.parquet.parquet import hash_of
from harness.record.formats.parquet.schema import SCHEMAS
from harness.record.formats.parquet.tables import read_table
from harness.record.formats.spread import in_turn, spread
from tests.amount import FIRST_SEED, count

SPOILED = count(150)
Kernel = Callable[[Part], Digest | None]


class Writer:
    """Lines of a history of several processes; now and then one that is odd, but allowed.

    A plain history has transactions alone, without strings; a numeric one is plain, and its keys and values are
    numbers.
    """

    def __init__(self, random: Random, *, is_plain: bool = False, is_numeric: bool = False) -> None:
        self.random, self.lines, self._is_plain, self._is_numeric = random, list[str](), is_plain, is_numeric
        self._write = random.choice([":append", ":append", ":w"]) if is_numeric else ":append"
        self._next, self._open = 5, dict[int, str]()

    def line(self, kind: str, process: int, value: str, f: str = ":txn") -> None:
        index = len(self.lines)
        text = ":timeout" if self._is_plain else '[:timeout "a ; {b"]'
        text = self.random.choice([text, r'"no, \"x, y\""', r'[:char \", "a,  b"]']) if self._is_numeric else text
        error = f", :error {text}" if kind in {"fail", "info"} and self.random.random() < 0.3 else ""
        pad = self.random.choice(["", "", "", "" if self._is_plain else " ; the end", ","])
        value = value.replace("  ", " ") if self._is_numeric else value
        rest = f":process {process}, :time {index * 10}, :index {index}{error}"
        self.lines.append(f"{{:type :{kind}, :f {f}, :value {value}, {rest}}}{pad}")

    def step(self) -> None:
        random = self.random
        process = random.randrange(self._next)
        if random.random() < 0.05 and not self._is_plain:
            index = len(self.lines)
            self.lines.append(
                f"{{:type :info, :f :start, :process :nemesis, :value [:n1 nil], :time {index}, :index {index}}}"
            )
        elif process in self._open:
            asked = self._open.pop(process)
            kind = random.choice(["ok", "ok", "ok", "fail", "info"])
            if asked.startswith("[["):
                done = " ".join(self._done(part) for part in asked[1:-1].split("  "))
                self.line(kind, process, f"[{done}]" if kind == "ok" else asked)
            else:
                self.line(kind, process, asked, ":cas")
        else:
            asked = "[" + "  ".join(self._asked() for _ in range(random.randint(1, 3))) + "]"
            if random.random() < 0.1 and not self._is_plain:
                asked = random.choice(["nil", '"{:type :ok}"', "[1 2]"])
            self._open[process] = asked
            self.line("invoke", process, asked, ":txn" if asked.startswith("[[") else ":cas")

    def _key(self) -> str:
        if self._is_numeric:
            return self.random.choice(["1", "2", "30"])
        return self.random.choice(
            [
                "1",
                "2",
                ":x",
                "3" if self._is_plain else '"a b"',
                "[1 :y]",
                "-3",
                "5" if self._is_plain else f"{NAMED + 1}",
            ]
        )

    def _asked(self) -> str:
        if self.random.random() < 0.5:
            return f"[:r {self._key()} nil]"
        if self._is_numeric:
            return f"[{self._write} {self._key()} {self.random.choice([7, 800, 0, NAMED - 1])}]"
        return f"[:append {self._key()} {self.random.choice(['7', '8', 'nil', ':new', '[1]', '1.5'])}]"

    def _done(self, step: str) -> str:
        if not step.startswith("[:r"):
            return step
        if self._write == ":w":
            return step.removesuffix("nil]") + self.random.choice(["nil", "1", "20"]) + "]"
        some = ["1", "2", "44" if self._is_numeric else ":e", "3" if self._is_plain else '"f"']
        elements = self.random.choice([" ", ", "]).join(
            self.random.choice(some) for _ in range(self.random.randint(0, 4))
        )
        return step.removesuffix("nil]") + self.random.choice(["nil", f"[{elements}]", "[1 2 3]"]) + "]"


def in_json(edn: str, separators: tuple[str, str]) -> str:
    """The same maps as JSON, one in each line."""
    lines = [json.dumps(_without_colons(one_form(line.encode())), separators=separators) for line in edn.splitlines()]
    return "\n".join(lines) + edn[len(edn.rstrip("\n")) :]


def _without_colons(value: Json) -> Json:
    match value:
        case str():
            return value.removeprefix(":")
        case list():
            return [_without_colons(each) for each in value]
        case dict():
            return {name.removeprefix(":"): _without_colons(each) for name, each in value.items()}
        case _:
            return value


SPELLINGS: dict[str, tuple[NotationName, Callable[[str], str]]] = {
    "EDN": ("EDN", str),
    "JSON": ("JSON", lambda edn: in_json(edn, (",", ":"))),
    "JSON with spaces": ("JSON", lambda edn: in_json(edn, (", ", ": "))),
}


def history(seed: int) -> str:
    writer = Writer(Random(seed), is_plain=seed % 3 < 2, is_numeric=seed % 3 == 0)
    for _ in range(writer.random.randint(5, 120)):
        writer.step()
    return "\n".join(writer.lines) + writer.random.choice(["", "\n"])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def tables(folder: Path) -> dict[str, pa.Table]:
    return {name: read_table(folder, name) for name in SCHEMAS}


@pytest.fixture(autouse=True)
def in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """`load` reads a file in one pass, so that there is something to compare with."""
    monkeypatch.setattr(loading, "_in_parts", lambda *_, **__: None)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (operations, stitching):
        monkeypatch.setattr(module, "GROUP_OPS", 20)
        monkeypatch.setattr(module, "GROUP_ELEMENTS", 25)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_files_are_the_same_wherever_the_text_is_cut(spelling: str, tmp_path: Path) -> None:
    notation, spelled = SPELLINGS[spelling]
    cuts = 0
    for seed in range(60) if notation == "EDN" else range(0, 60, 3):  # Of JSON, those that are read by columns.
        path = tmp_path / f"{seed}.{notation.lower()}"
        path.write_text(spelled(history(seed)), encoding="utf-8")
        whole = load(path, tmp_path / "whole")
        places, plain = set[int](), list[Part]()

        def noted(part: Part, places: set[int] = places, plain: list[Part] = plain) -> Digest | None:
            places.add(part.offset)
            digest = digest_of(part)
            if plain_digest(part, Path(part.path).read_bytes()[part.offset : part.offset + part.size]) is not None:
                plain.append(part)
            return digest

        def noting(
            _: Kernel, items: Iterable[Part], noted: Kernel = noted
        ) -> AbstractContextManager[Iterator[Digest | None]]:
            return in_turn(noted, items)

        size = Random(seed).randint(100, 3000)
        left_out = write_in_parts(path, tmp_path / "parts", noting, notation=notation, part_bytes=size)
        assert contents(tmp_path / "parts") == contents(whole.history), seed
        write_in_parts(path, tmp_path / "quick", in_turn, notation=notation, part_bytes=size, is_hashed=False)
        assert hash_of(tmp_path / "quick") is None
        assert tables(tmp_path / "quick") == tables(whole.history), seed
        assert whole.notes == ((f"{left_out} nemesis operations skipped",) if left_out else ())
        cuts += len(places) - 1
        assert seed % 3 or len(plain) == len(places), f"seed {seed}: a numeric history is read by columns"
    assert cuts > (200 if notation == "EDN" else 60)


PIECES: dict[NotationName, tuple[str, ...]] = {
    "EDN": (
        *(
            '"',
            ";",
            "#_",
            "[",
            "]",
            "{",
            "}",
            "\n",
            "\n{",
            ":type :invoke",
            ":type :ok",
            "#jepsen.history.Op",
            " ",
            "é",
        ),
        *(":process 1", ":process :nemesis", ":index 3", ":time 0", "\n{}", "\n{:type :ok}", "(", "#", "\\\n", "\r\n"),
        *("\n;\n", "", ""),
    ),
    "JSON": (
        *(
            "0",
            "1",
            "1",
            "7",
            " ",
            " ",
            "\n",
            "\r\n",
            "\t",
            ",",
            ", ",
            ",]",
            "-",
            ".5",
            "01",
            "1e3",
            "null",
            "[~]",
            "\\",
        ),
        *('"', "é", '"type":"invoke",', '"process": true, ', '"time":3,', '"index":-1,', '"of": 5, ', '"x":"a, b",'),
        *(
            "\n{}",
            "{",
            "}",
            "]",
            '["append",1,1]',
            '["r", 1, [2,]]',
            '["w",1]',
            "[1, 2]",
            "[1 2]",
            "",
            "",
        ),
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_of_a_spoiled_file_parts_say_the_same_or_nothing(spelling: str, tmp_path: Path) -> None:
    notation, spelled = SPELLINGS[spelling]
    path, same, silent = tmp_path / f"history.{notation.lower()}", 0, 0
    files = SPOILED if notation == "EDN" else SPOILED // 3
    for seed in range(FIRST_SEED, FIRST_SEED + files):
        random = Random(seed)
        text = spelled(history(seed if notation == "EDN" else 3 * seed))
        for _ in range(random.randint(1, 2)):
            at = random.randint(0, len(text))
            text = text[:at] + random.choice(PIECES[notation]) + text[at + random.choice([0, 0, 1, 5, 120]) :]
        path.write_text(text, encoding="utf-8")
        try:
            size = random.randint(50, 1500)
            write_in_parts(path, tmp_path / "parts", in_turn, notation=notation, part_bytes=size)
        except NotInParts:
            silent += 1
            continue
        found = load(path, tmp_path / "whole")
        assert contents(tmp_path / "parts") == contents(found.history), seed
        same += 1
    assert same > SPOILED // 50 or notation == "JSON"  # Nearly all damage makes JSON unreadable by columns.
    assert silent > files // 20


@pytest.mark.usefixtures("small_chunks")
def test_several_processes_read_parts_as_this_one_does(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(history(3), encoding="utf-8")
    write_in_parts(path, tmp_path / "here", in_turn, part_bytes=700)
    write_in_parts(path, tmp_path / "there", spread, part_bytes=700)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


class Pool(ThreadPoolExecutor):
    """Counts how many pools are open, and needs no process."""

    open_count = 0

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__(1)
        Pool.open_count += 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=wait, cancel_futures=cancel_futures)
        Pool.open_count -= 1


def test_the_processes_end_with_the_reading_though_somebody_keeps_its_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the garbage collector would end them, at any time and in any thread: a run of tests hung in that."""
    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Pool)
    path = tmp_path / "history.edn"
    path.write_text("{:type :invoke, :process 0}\n{:type :invoke, :process 0}\n" * 20, encoding="utf-8")
    with pytest.raises(NotInParts) as kept:
        write_in_parts(path, tmp_path / "parts", spread, part_bytes=10)
    assert kept.traceback
    assert Pool.open_count == 0


@pytest.mark.parametrize(
    "text",
    [
        "[{:type :invoke, :process 0}\n{:type :ok, :process 0}]",  # A vector is one form.
        "{:type :invoke, :process 0}\n{:type :invoke, :process 0}\n",  # Operations of a process overlap.
        "{:type :ok, :process 0, :f :read}\n{:type :ok, :process 0, :f :read}\n",  # There are completions only.
        "{:type :invoke :process 0 :index 4}\n{:type :invoke :process 1 :index 2}\n",  # Indexes fall.
        "{:type :invoke, :process 0, :value\n{:x 1}}\n{:type :ok, :process 0}\n",  # A form goes over several lines.
        '{:type :invoke, :process 0, :value "\n{"}\n{:type :ok, :process 0}\n',  # So does a string.
        "{:type :ok, :process 0, :f :read\n",  # It ends inside of a form.
        "{:type  :invoke, :process 0}\n{:type :ok, :process 0}\n",  # It is spelled as nobody does.
        "{:type :invoke, :process 0}\n; now\n  {:type :ok, :process 0}\n{:type :invoke, :process 0}\n",
    ],
)
def test_what_cannot_be_cut_is_left_to_one_reader(text: str, tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NotInParts):
        write_in_parts(path, tmp_path / "parts", in_turn, part_bytes=10)
    assert not (tmp_path / "parts").exists()
    assert format_of(path).name == "EDN"


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("[[:r 1 nil]]", "[[:r 2 []]]"),
        ("[[:r 1 nil]]", "[[:r 1.0 []]]"),
        ("[[:append 1 1]]", "[[:append 1 2]]"),
        ("[[:append 1 1]]", "[[:append 1 true]]"),
        ("[[:append [1] 1]]", "[[:append [1.0] 1]]"),
        ("[[:append 1 1]]", "[[:w 1 1]]"),
        ("[[:append 1 1]]", "[[:append 1 1] [:r 1 [1]]]"),
    ],
)
def test_an_answer_to_another_request_is_left_to_the_reader_of_the_whole_file(
    asked: str, answered: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.edn"
    request = f"{{:type :invoke, :f :txn, :value {asked}, :process 0}}\n"
    path.write_text(request + f"{{:type :ok, :f :txn, :value {answered}, :process 0}}\n", encoding="utf-8")
    with pytest.raises(NotInParts):
        write_in_parts(path, tmp_path / "parts", in_turn)
    path.write_text(request + f"{{:type :ok, :f :txn, :value {asked}, :process 0}}\n", encoding="utf-8")
    assert write_in_parts(path, tmp_path / "parts", in_turn) == 0
