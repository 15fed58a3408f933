"""`seamark replay --trace`: the repetition stays exact, and leaves a trace and a page in the run's directory."""

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

import harness.run.running
from harness.core.record import Footer
from harness.core.trace import SECOND, TraceRecord
from harness.record.journal import read_journal
from tests.command.broken import BROKEN_CHILD
from tests.command.conftest import Seamark


def trace_of(run: Path) -> list[TraceRecord]:
    return [msgspec.json.decode(line, type=TraceRecord) for line in (run / "trace.jsonl").read_bytes().splitlines()]


class Elements(HTMLParser):
    """Counts the elements of a page, and keeps what could load or run anything."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.suspicious: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in ("link", "img", "iframe", "object"):
            self.suspicious.append(tag)
        self.suspicious += [name for name, _ in attrs if name.startswith("on") or name == "src"]
        self.suspicious += [
            f"{name} {value}" for name, value in attrs if name == "href" and "report.html" not in str(value)
        ]


def arrows(page: str) -> list[str]:
    """The arrows of the drawing, without the samples of the legends."""
    drawing = page[page.index('<div class="picture') : page.index("<fieldset")]
    return re.findall('<path class="m t', drawing) + re.findall('<path class="m other', drawing)


def test_a_trace_is_written_and_the_repetition_is_exact_all_the_same(seamark: Seamark, run_copy: Path) -> None:
    outcome = seamark("replay", run_copy, "--trace", "1.5..3", "--engine", "local")
    assert outcome.code == 0
    assert outcome.out.startswith("exact  ")
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("trace  ")]
    assert str(run_copy / "trace.html") in line
    lines = trace_of(run_copy)
    sent = {line.number for line in lines if line.what == "send"}
    delivered = [line.number for line in lines if line.what == "deliver"]
    assert len(delivered) > 300
    assert set(delivered) <= sent
    within = [line for line in lines if 1.5 * SECOND <= line.ns <= 3 * SECOND]
    assert len(within) > 0.95 * len(lines)
    assert {path.name for path in run_copy.iterdir()} >= {"trace.jsonl", "trace.html", "journal.log"}
    assert not list(run_copy.glob("again-*"))


def test_the_page_draws_every_message_and_loads_nothing(seamark: Seamark, run_copy: Path) -> None:
    assert seamark("replay", run_copy, "--trace", "2..2.5", "--engine", "local").code == 0
    text = (run_copy / "trace.html").read_text(encoding="utf-8")
    messages = [line for line in trace_of(run_copy) if line.what == "send"]
    assert len(arrows(text)) == len(messages)
    assert f"All {len(messages):,} messages are drawn" in text
    page = Elements(text)
    assert page.suspicious == []
    assert page.tags.count("svg") > 2
    assert "default-src 'none'; style-src 'sha256-" in text
    assert "Call Transact" in text


def test_a_large_window_says_how_much_it_leaves_out(seamark: Seamark, run_copy: Path) -> None:
    outcome = seamark("replay", run_copy, "--trace", "0..6", "--engine", "local", "--json")
    assert outcome.code == 0
    assert outcome.json["verdict"] == "valid"  # Standard output holds the report and nothing else.
    total = sum(line.what == "send" for line in trace_of(run_copy))
    lost = sum(line.what == "lost" for line in trace_of(run_copy))
    assert total > 2000
    said = f"Thinned: 1,500 of {total:,} messages are drawn ({lost} of the {lost} that were lost, "
    text = (run_copy / "trace.html").read_text(encoding="utf-8")
    assert said in text
    assert said in f"{' '.join(outcome.err.split())} "  # Lines break between words.
    assert len(arrows(text)) == 1500


@pytest.mark.parametrize("window", ["3", "2..1", "a..b", "-1..2", "1..2..3"])
def test_a_window_that_means_nothing_is_bad_usage(seamark: Seamark, run_copy: Path, window: str) -> None:
    outcome = seamark("replay", run_copy, f"--trace={window}", "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert "--trace" in outcome.line
    assert not (run_copy / "trace.jsonl").exists()


def test_a_window_after_the_end_is_bad_usage_and_the_end_is_told(seamark: Seamark, run_copy: Path) -> None:
    (footer,) = [record for record in read_journal(run_copy / "journal.log") if isinstance(record, Footer)]
    outcome = seamark("replay", run_copy, "--trace", "100..200", "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert outcome.line.endswith(f"--trace 100..200: the run was over after {footer.time_ns / SECOND:.3f} s")


def test_only_a_simulation_can_be_traced(seamark: Seamark, run_copy: Path) -> None:
    text = (run_copy / "run.json").read_text(encoding="utf-8")
    (run_copy / "run.json").write_text(text.replace('"runtime": "sim"', '"runtime": "docker"'), encoding="utf-8")
    outcome = seamark("replay", run_copy, "--trace", "1..2", "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert "docker" in outcome.line


def test_a_simulation_that_fails_leaves_its_trace_up_to_there(
    seamark: Seamark, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.run.running, "CHILDREN", {"sim": (BROKEN_CHILD, "machine")})
    outcome = seamark("replay", run_copy, "--trace", "0..6", "--engine", "local")
    assert (outcome.code, outcome.out) == (4, "")
    assert "raised ZeroDivisionError" in outcome.line
    assert (run_copy / "trace.jsonl").exists()
    assert not (run_copy / "trace.html").exists()
