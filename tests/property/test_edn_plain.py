"""The quick way through plain EDN says what the slow way says, whatever was done to the lines."""

from pathlib import Path
from random import Random

from harness.core.errors import HistoryError
from harness.core.record import Evidence
from harness.record.formats.edn.exchange import read_edn_history
from harness.record.formats.edn.forms import one_form, read_edn, read_edn_with
from harness.record.formats.edn.jepsen import records_of_maps
from harness.record.formats.edn.plain import PlainLines
from tests.amount import FIRST_SEED, count

COUNT = count(1500)
LINES = [
    "{:type :invoke, :f :txn, :value [[:append 11 1] [:r 11 nil]], :process 10, :time 14532933, :index 0}",
    "{:type :ok, :f :txn, :value [[:append 11 1] [:r 11 [1 2 -3 40]]], :process 10, :time 14532934, :index 1}",
    "{:index 2 :type :ok :value [[:w :x 1] [:r :y nil] [:r :z []]] :process 3}",
    "{:type :fail, :f :txn, :value [[:r -0 nil] [:append 1.5 true]], :process 4, :error :timed-out, :index 4}",
    "{:type :invoke, :f :read, :value nil, :process 5, :time 1, :index 5}",
    "{:type :info, :f :cas, :value [1 [2 nil]], :process 6, :time 1, :index 6}",
    '{:type :info, :f :txn, :value [[:append "a b" 2]], :process 7, :error [:x "y, z"], :index 7}',
    "{:type :info, :f :start, :process :nemesis, :value :all, :time 9, :index 8}",
    "",
]
PIECES = [
    *(" ", ",", ", ", "\n", ":", ":f", ":f :txn", ":type ", ":value ", ":error :x", "[", "]", "{", "}", "[]", "{}"),
    *("nil", "null", "true", '"', '"a b"', "\\a", "#", "#{1}", ";", "-", "-0", "1.0", "1e3", "1N", "9" * 19, "x"),
    *(":append", ":r", "[:r 1 2 3]", "[:append 1]", "[:r 1]", "[:w 1 2 nil :x]", "[[[[[[[[1]]]]]]]]", ":key 3", "é"),
]


def outcome(path: Path, *, is_quick: bool) -> list[Evidence] | str:
    """The records of a file, or why there are none."""
    try:
        if is_quick:
            return list(read_edn_history(path))
        maps = ((f"operation {number}", form) for number, form in enumerate(read_edn(path)))
        return list(records_of_maps(str(path), maps, ":"))
    except HistoryError as error:
        return str(error)


def spoiled(random: Random) -> str:
    """Some lines, in one vector or not, with up to three things done to them."""
    text = "\n".join(random.choices(LINES, k=random.randint(1, 6))) + random.choice(["", "\n"])
    text = random.choice([text, text, f"[{text}]", text.replace("\n", "\n ")])
    for _ in range(random.randint(0, 3)):
        at = random.randint(0, len(text))
        gone = random.choice([0, 0, 1, 3, 8])
        text = text[:at] + random.choice([*PIECES, "", "", ""]) + text[at + gone :]
    return text


def test_both_ways_give_the_same_records_or_the_same_refusal(tmp_path: Path) -> None:
    path, read = tmp_path / "history.edn", 0
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        text = spoiled(Random(seed))
        path.write_text(text, encoding="utf-8")
        quick, slow = outcome(path, is_quick=True), outcome(path, is_quick=False)
        assert repr(quick) == repr(slow), f"seed {seed}: {text!r}"
        read += not isinstance(slow, str)
    assert COUNT // 10 < read < COUNT * 9 // 10


def test_a_vector_after_white_space_is_still_all_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(",\n[" + "\n".join(LINES[:2]) + "]", encoding="utf-8")
    assert len(outcome(path, is_quick=True)) == 2


def test_a_vector_without_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    for end in ("", "\n"):
        path.write_text("[\n" + LINES[5] + end, encoding="utf-8")
        assert "the file ends inside of '['" in outcome(path, is_quick=True)


def test_plain_lines_go_the_quick_way_and_others_among_them_do_not_hinder_them() -> None:
    lines = PlainLines(one_form)
    assert lines.read("\n".join(LINES[:4] * 3 + LINES[6:]).encode()) is not None
    assert lines.read("\n".join([*LINES[:2], LINES[4], LINES[7]]).encode()) is not None
    assert lines.read(b'{:type :ok, :value "a"}') is None  # Nothing would be gained.
    assert lines.read(b'{:a 1}\n{:b 2}\n{:c 3}\n{:d "}') is None  # A string that goes on.


def test_a_value_that_looks_like_a_transaction_is_kept_though_its_invocation_is_none(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    asked, answered = '{:type :invoke, :value "go", :process 1}', "{:type :ok, :value [[:r 1 [2]]], :process 1}"
    path.write_text("\n".join([*LINES[:2], asked, answered, *LINES[3:4]]), encoding="utf-8")
    quick, slow = outcome(path, is_quick=True), outcome(path, is_quick=False)
    assert repr(quick) == repr(slow)
    assert "[':r', 1, [2]]" in repr(quick)


def test_a_history_of_many_blocks_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    pair = "".join(
        f"{{{{:type :{kind}, :f :txn, :value [[:append 1 {{0}}]], :process 0}}}}\n" for kind in ("invoke", "ok")
    )
    read = ':f :read, :process 1, :value "a\nb"}'
    odd = f"{{:type :invoke, {read} {{:type :ok, {read} ; two lines\n"
    text = "[" + "".join(pair.format(number) + (odd if number % 5000 == 7 else "") for number in range(20_000)) + "]"
    assert len(text) > 2 << 20
    path.write_text(text, encoding="utf-8")
    count = sum(1 for form in read_edn_with(path, PlainLines(one_form).read) if isinstance(form, dict))
    assert 0 < count < 40_000  # Some of it went the slow way, not all.
    assert outcome(path, is_quick=True) == outcome(path, is_quick=False)
