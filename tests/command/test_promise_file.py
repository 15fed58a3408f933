"""`seamark check --promises`: what is promised is judged, and each mistake in the file is one line."""

from pathlib import Path

import pytest

from harness.core.record import Complete, Evidence, Invoke, MicroOp, StreamEvent
from harness.record.formats.jsonl import write_jsonl
from tests.command.conftest import Seamark

PROMISES = """\
model = "serializable"

[stream]
closed = "<="
cut = "position"
position = "revision"
order_key = "global"
identity = "position+key+ordinal"

[[promise]]
id = "WATCH-1"
text = "After a progress notification no event at or below its revision arrives."
source = "the manual, section 4"
forbids = ["late-event", "late-event-boundary"]
"""


def history(*, is_late: bool) -> list[Evidence]:
    """Twelve writes and the events about them; one comes after a watermark that includes it, or none does."""
    records: list[Evidence] = []
    events: list[tuple[str, int]] = [("open", 0)]
    for number in range(12):
        write, asked, seen = MicroOp("append", number, number), MicroOp("r", number), MicroOp("r", number, [number])
        records += [Invoke(2 * number, number, number, 0, "txn", None, (write,))]
        records += [Complete(2 * number, number, "ok", None, (write,), commit_ts=number + 1)]
        records += [Invoke(2 * number + 1, number, number, 0, "txn", None, (asked,))]
        records += [Complete(2 * number + 1, number, "ok", None, (seen,))]
        events += [("row", number + 1), ("watermark", number + 1)]
    if is_late:
        events[-1], events[-2] = events[-2], events[-1]
    for place, (kind, position) in enumerate(events):
        row = {"key": position - 1, "value": position - 1, "ordinal": 0} if kind == "row" else {}
        records.append(StreamEvent(20 + place, "s1", 0, place, kind, position=position, **row))  # type: ignore[arg-type]  # Mixed fields.
    return records


def judged(seamark: Seamark, tmp_path: Path, *, is_late: bool, promises: str = PROMISES) -> tuple[int, dict[str, str]]:
    """The exit code, and what became of each promise."""
    write_jsonl(history(is_late=is_late), tmp_path / "h.jsonl")
    (tmp_path / "p.toml").write_text(promises)
    outcome = seamark("check", "h.jsonl", "--promises", "p.toml", "--engine", "local", "--json")
    promised = outcome.json["promises"]
    assert isinstance(promised, list)
    return outcome.code, {str(each["id"]): str(each["verdict"]) for each in promised if isinstance(each, dict)}


@pytest.mark.parametrize(
    ("initial", "verdict"), [("", "unknown"), ("initial = 7", "violated"), ("initial = 3", "holds")]
)
def test_a_register_is_read_as_the_file_says(seamark: Seamark, tmp_path: Path, initial: str, verdict: str) -> None:
    evidence: list[Evidence] = [Invoke(0, 0, 0, 0, "read"), Complete(0, 1, "ok", 3)]
    evidence += [
        Invoke(1, 2, 2, 0, "write", 5),
        Complete(1, 3, "ok", 5),
        Invoke(2, 4, 4, 0, "read"),
        Complete(2, 5, "ok", 5),
    ]
    write_jsonl(evidence, tmp_path / "h.jsonl")
    (tmp_path / "p.toml").write_text(f"[register]\n{initial}\n")
    outcome = seamark("check", "h.jsonl", "--promises", "p.toml", "--engine", "local", "--json")
    promised = outcome.json["promises"]
    assert isinstance(promised, list)
    assert [each["verdict"] for each in promised if isinstance(each, dict)] == [verdict]
    assert outcome.code == {"unknown": 2, "violated": 1, "holds": 0}[verdict]


def test_a_broken_promise_of_a_foreign_stream_is_found(seamark: Seamark, tmp_path: Path) -> None:
    assert judged(seamark, tmp_path, is_late=True)[1] == {"MODEL": "holds", "WATCH-1": "violated"}


def test_a_kept_promise_holds_and_says_how_often_it_was_seen(seamark: Seamark, tmp_path: Path) -> None:
    code, promises = judged(seamark, tmp_path, is_late=False)
    assert promises == {"MODEL": "holds", "WATCH-1": "holds"}
    assert code == 0


def test_what_is_not_promised_is_no_violation(seamark: Seamark, tmp_path: Path) -> None:
    other = PROMISES.replace('"late-event", "late-event-boundary"', '"watermark-regress"')
    assert judged(seamark, tmp_path, is_late=True, promises=other)[1]["WATCH-1"] == "holds"


def test_what_the_stream_shows_is_read_as_the_contract_says(seamark: Seamark, tmp_path: Path) -> None:
    """Where a watermark does not promise what is exactly at it, that event is not late."""
    other = PROMISES.replace('"<="', '"<"')
    assert judged(seamark, tmp_path, is_late=True, promises=other)[1]["WATCH-1"] == "holds"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("model =", "modle =", "unknown part of a promise file 'modle'; did you mean model?"),
        ('"serializable"', '"serialisable"', "did you mean serializable"),
        ('"serializable"', "7", "model is one text"),
        ("[stream]", "[register]\nmodl = 1\n[stream]", "[register]: unknown field 'modl'; did you mean model?"),
        ("closed =", "close =", "[stream]: unknown field 'close'; did you mean closed?"),
        ('closed = "<="\n', "", '[stream]: it has no closed: write closed = "<" or closed = "<="'),
        ('"revision"', '"revisions"', "[stream]: unknown position 'revisions'; did you mean revision?"),
        ('identity = "position+key+ordinal"', "identity = 3", "[stream]: "),
        ('["late-event", "late-event-boundary"]', '["late-evnt"]', "number 1: unknown anomaly"),
        ('["late-event", "late-event-boundary"]', '"late-event"', "number 1: forbids must be a list, and is a text"),
        ('["late-event", "late-event-boundary"]', "[]", "number 1: it forbids nothing"),
        ('forbids = ["late-event", "late-event-boundary"]', "", "number 1: it has no forbids: write forbids = [...]"),
        ('["late-event", "late-event-boundary"]', '["G1c"]', "there is a [stream], and no promise about it"),
        ('id = "WATCH-1"', 'id = "WATCH-1"\ncheck = "stream"', "unknown check 'stream'; did you mean streams?"),
        ("[[promise]]", "[promise]", "write [[promise]], with two brackets"),
        (PROMISES, "", "the file promises nothing"),
        (PROMISES, '[[promise]]\nforbids = ["late-event"]\n', "promise P1 forbids late-event: that needs a [stream]"),
        (PROMISES, PROMISES + PROMISES[PROMISES.index("[[") :], "another promise with the id 'WATCH-1'"),
        (PROMISES, "[bounds]\nstall_ms = 3\n", "[bounds]: unknown field 'stall_ms'; did you mean stall_ns?"),
        (PROMISES, "model", "not valid TOML"),
        (PROMISES, "stream = 3", "[stream]: it is no table of fields"),
    ],
)
def test_a_mistake_is_one_line(seamark: Seamark, tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in PROMISES
    (tmp_path / "h.edn").write_text("{:type :ok, :f :txn, :value [[:r 1 nil]]}")
    (tmp_path / "p.toml").write_text(PROMISES.replace(before, after))
    outcome = seamark("check", "h.edn", "--promises", "p.toml", "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert "p.toml: " in outcome.line
    assert message in outcome.line


def test_a_file_that_is_not_there_and_a_run_of_ours_are_refused(seamark: Seamark, run_copy: Path) -> None:
    outcome = seamark("check", run_copy, "--promises", "nowhere.toml", "--engine", "local")
    assert (outcome.code, "run.json" in outcome.line) == (64, True)
    outcome = seamark("check", run_copy / "journal.log", "--promises", "nowhere.toml", "--engine", "local")
    assert (outcome.code, "nowhere.toml: cannot be read" in outcome.line) == (64, True)
