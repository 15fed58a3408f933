"""The page of a report: one bug is one finding first, promises at a glance, commands that run as copied."""

import html
import io
import re
import shlex
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from harness.core.promises import MODEL
from harness.core.record import Json
from harness.core.verdict import Verdict
from harness.report.console.terminal import Amount, show
from harness.report.github import annotations
from harness.report.markdown import escaped, issue, summary
from harness.report.model import FindingRow, PromiseRow, Report, called, closer, moment_window
from harness.report.page import page
from harness.report.screen import commands
from harness.report.shrunk import SHRUNK_FILE, Origin, is_shrunk
from tests.unit.report.conftest import MS, Written, operation, report, row, watermark
from tests.worlds.run_files import run_file

SOURCE = "the manual, chapter 4"


def finding(anomaly: str, *, ops: tuple[int, ...] = (), events: tuple[int, ...] = (), count: int = 1) -> FindingRow:
    sentence = f"{anomaly} it was."
    return FindingRow(fingerprint=anomaly, anomaly=anomaly, checker="c", sentence=sentence, promise=anomaly,
                      ops=ops, events=events, count=count)  # fmt: skip


def promised(name: str, verdict: str = "violated", source: str = SOURCE) -> PromiseRow:
    return PromiseRow(id=name, verdict=verdict, witnesses=12, text=f"No {name}.", source=source)


def broken(*found: FindingRow, promises: tuple[PromiseRow, ...] = ()) -> Report:
    known = promises or tuple(promised(each.anomaly) for each in found)
    return report(
        Verdict.INVALID, findings=found, promises=known, run="store/c/1-1", runtime="sim", cluster="c", seed=1
    )


def text_of(part: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", part))


def folded(text: str) -> list[str]:
    """The names of the findings that are lines to open."""
    return [
        html.unescape(name) for name in re.findall(r'<details class="line[^>]*><summary><b>\d+ · ([^<]*)</b>', text)
    ]


def test_findings_of_one_event_are_one_in_full_and_lines_that_open() -> None:
    text = page(broken(finding("missing-event", ops=(1,)), finding("torn-unit", ops=(1,)), finding("G1a", ops=(9,))))
    assert text.count("<h2 id=") == 3  # The index, the first finding, and the promises.
    assert re.search(r'<h2 id="f1">Finding 1 of 3 · Missing event</h2>', text)
    assert folded(text) == ["Torn unit", "Aborted read (G1a)"]
    assert "The same event, as other checks see it" in text
    assert "Elsewhere in the run" in text


def test_an_index_links_every_finding() -> None:
    text = page(broken(finding("missing-event", ops=(1,), count=4), finding("torn-unit", ops=(1,))))
    index = text[text.index('<h2 id="findings">') : text.index("</table>", text.index('<h2 id="findings">'))]
    assert re.findall(r'href="#(f\d)">\d', index) == ["f1", "f2"]
    assert [" ".join(text_of(line).split()) for line in index.split("<tr")[1:]] == [
        "> 1 Missing event breaks missing-event 4 times",
        'class="follows"> 2 Torn unit breaks torn-unit once',
    ]
    assert 'id="findings"' not in page(broken(finding("missing-event")))  # One needs no index.


def test_a_strip_shows_all_promises_not_by_colour_alone() -> None:
    every = (promised("A"), promised("B", "holds"), promised("C", "not-exercised"), promised("D", "unknown"))
    text = page(broken(finding("A"), promises=every))
    strip = text[text.index('<p class="strip">') : text.index("</p>", text.index('<p class="strip">'))]
    assert text_of(strip).split() == ["✗", "A", "✓", "B", "–", "C", "?", "D"]
    assert "✗ 1 violated, ? 1 unknown, – 1 not exercised, ✓ 1 held." in text
    for link in re.findall(r'href="#(promise-\d)"', strip):
        assert text.count(f'id="{link}"') == 1


def test_a_source_is_named_once() -> None:
    every = tuple(promised(f"P-{number}") for number in range(27))
    assert page(broken(finding("P-0"), promises=every)).count(SOURCE) == 2  # And in the issue to copy.
    two = (*every, promised("Q", source="another page"))
    text = page(broken(finding("Q"), promises=two))
    assert text.count(SOURCE) == 1
    assert "<b>2</b> another page" in text
    assert "No Q.&nbsp;<sup>2</sup>" in text


def test_what_occurs_is_explained_on_the_page() -> None:
    text = page(broken(finding("G-single"), finding("fractured-read")))
    assert "<dt>Read skew (G-single)</dt><dd>A transaction sees one effect of another and misses a second" in text
    assert "<dt>Fractured read</dt>" in text


def test_a_verdict_on_transactions_says_how_it_was_reached_also_if_nothing_is_ruled_out() -> None:
    facts: dict[str, Json] = {
        "decided": "proved",
        "edges": {"ww": 1, "wr": 0, "rw": 0},
        "ruled_out_weakest": [],
        "not_ruled_out_strongest": ["serializable"],
    }
    early: dict[str, Json] = {"decided": "no counterexample found"}
    known = (promised("P-1"),)
    held = report(Verdict.VALID, promises=known, facts={"serializability": facts})
    unknown = report(Verdict.UNKNOWN, promises=known, facts={"serializability": early})
    for one, said in ((held, "decided exactly"), (unknown, "not decided: no counterexample found")):
        assert f"Transactions: {said}" in text_of(page(one))
        console = Console(file=io.StringIO(), width=200)
        show(console, one)
        assert isinstance(console.file, io.StringIO)
        assert said in console.file.getvalue()


def test_a_model_goes_by_its_name() -> None:
    one = msgspec.structs.replace(finding("G-single"), promise=MODEL)
    kept = msgspec.structs.replace(promised(MODEL), text="Transactions are so.")
    about = msgspec.structs.replace(broken(one, promises=(kept,)), model="snapshot-isolation")
    assert called(about, MODEL) == "snapshot-isolation"
    for text in (text_of(page(about)), summary(about), issue(about, one, (), repeating=[])):
        assert "snapshot-isolation" in text
        assert MODEL not in text
    assert called(about, "P-1") == "P-1"


@pytest.mark.parametrize(("runtime", "remark"), [("sim", "exact"), ("docker", "the same plan and workload")])
def test_a_command_is_copied_without_its_remark(runtime: str, remark: str) -> None:
    about = msgspec.structs.replace(broken(finding("G0")), runtime=runtime)
    assert f'copy</button> <span class="soft">{remark}</span>' in page(about)
    assert all(remark not in command for _, command in commands(about))
    copied = [html.unescape(text) for text in re.findall(r'<p class="command">.*?<code>(.*?)</code>', page(about))]
    # The page is open.
    assert set(copied) == {command for label, command in commands(about) if label != "open"}
    for command in copied[1:]:
        words = shlex.split(command)
        assert words[0] == "seamark"
        assert not {"exact", "#"} & set(words)


def test_what_was_tested_is_a_sentence_also_of_a_single_client_and_of_a_script() -> None:
    about = broken(finding("G0"))
    run = msgspec.structs.replace(run_file(), options={"clients": 1, "rate": 30.0, "time_s": 8.0})
    assert "tutorial in simulation, workload list-append: 1 client at 30 operations a second for 8 s, with" in page(
        about, run_file=run
    )
    script: Json = {"load": [{"at_ns": 1}], "final": []}
    shrunk = msgspec.structs.replace(run, options={**run.options, "clients": 2, "script": script})
    assert "workload list-append: 2 clients with 1 operation of a script, with faults" in page(about, run_file=shrunk)


def test_a_shrunk_run_says_what_is_left_and_not_how_to_shrink_it(tmp_path: Path) -> None:
    about = msgspec.structs.replace(broken(finding("G0")), run=str(tmp_path))
    assert "smaller" in dict(commands(about))
    assert "<dt>shrunk</dt>" not in page(about)
    origin = Origin(run="store/\x1b[2J<b>", tries=9, sizes={"fault steps": (13, 1), "operations": (5_210, 12)})
    (tmp_path / SHRUNK_FILE).write_bytes(msgspec.json.encode(origin))
    text = page(about)
    assert "1 of 13 fault steps, 12 of 5,210 operations, from <code>store/\\x1b[2J&lt;b&gt;</code>" in text
    assert "seamark shrink" not in text
    assert "smaller" not in dict(commands(about))
    console = Console(width=200)
    with console.capture() as captured:
        show(console, about, Amount(is_quiet=True))
    assert captured.get().endswith("  shrunk  1 of 13 fault steps, 12 of 5,210 operations, from store/\\x1b[2J<b>\n")
    assert not is_shrunk("k" * 5_000)
    (tmp_path / SHRUNK_FILE).write_text("{")  # No verdict rests on it: a page is written without it.
    assert "<dt>shrunk</dt>" not in page(about)


def test_a_finding_says_how_to_look_closer(written: Written) -> None:
    about = broken(finding("late-event", ops=(0,), events=(3,)))
    folder = written([*operation(0, 7_600, 7_660, position=5), watermark(7_670, 5), row(7_682, 0, 0, 5, 1)])
    assert "seamark replay store/c/1-1 --trace 7.64..7.72" in html.unescape(page(about, folder))
    around = moment_window(7_682 * MS)
    assert closer(about, around) == "seamark replay store/c/1-1 --trace 7.64..7.72"
    assert closer(msgspec.structs.replace(about, runtime="docker"), around) is None
    assert closer(msgspec.structs.replace(about, run=None), around) is None
    assert str(moment_window(0)) == "0..0.04"


def test_annotations_and_issues_say_what_the_headline_says() -> None:
    one = finding("missing-event")
    about = broken(one)
    assert one.sentence in page(about)
    assert one.sentence in annotations([about])[0]
    assert escaped(one.sentence) in issue(about, one, (), repeating=[])
