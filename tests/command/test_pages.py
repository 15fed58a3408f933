"""The pages in a browser: they fit a narrow screen, can be read in light and in dark, and obey nobody's text."""

import re
from pathlib import Path

import pytest

import harness.report.findings.story
import harness.run.running
from clusters.tutorial.promises import PROMISES
from harness.report.model import FindingRow, Report
from harness.report.page import page
from harness.run.single import write_page
from tests.command.browser import Browser, Probed, browser
from tests.command.conftest import SEED, SMALL, USUAL, Outcome, Seamark
from tests.command.picture import DEMO, Digest, of_report, of_templates, stored

__all__ = ["browser"]
CASES = len(PROMISES) + 2  # Settling, and the run as a whole.
BROKEN_CHILD = str(Path(__file__).with_name("broken_child.py"))
TAKE_OVER = "<script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"
HOSTILE = {
    "script": TAKE_OVER,
    "end of the values": "</script><script>window.taken = 1</script>",
    "end of the style": "</style><svg onload='window.taken = 1'>",
    "attribute": "\" onload='window.taken = 1' x=\"",
    "colour": "\x1b[2J\x1b[32mPASS",
    "right-to-left": "\u202e\u2066SSAP",
    "megabyte": "k" * 1_000_000,
}


def run_page(folder: Path, outcome: Outcome, *, code: int) -> Path:
    assert outcome.code == code, outcome
    (run,) = (folder / "store" / "tutorial").iterdir()
    return run / "report.html"


def assert_readable(probed: Probed) -> None:
    assert probed.width == 390
    assert probed.scroll_width <= probed.width
    assert probed.texts > 20
    assert probed.contrasts == {"light": [], "dark": []}
    assert probed.script_count == 2
    assert probed.is_scripted
    assert not probed.is_taken_over
    assert probed.missing_anchors == []


def test_a_failing_run_is_told_on_one_page(seamark: Seamark, tmp_path: Path, browser: Browser) -> None:
    outcome = seamark("run", "--cluster", "tutorial", "--bug", "torn-watermark", "--seed", "1", "--engine", "local",
                      "--time", "8")  # fmt: skip
    html = run_page(tmp_path, outcome, code=1)
    probed = browser.probe(html)
    assert_readable(probed)
    assert probed.open_anchors > 4
    assert not probed.zoomed.startswith("0 0 1000 ")  # "first finding" was pressed.
    dom, log = browser.dom(html)  # As it is, with its policy.
    assert '<html lang="en" class="js"' in dom
    assert "Refused" not in log
    assert "Content Security Policy" not in log
    assert "CONSOLE" not in log
    text = html.read_text(encoding="utf-8")
    for needed in (
        "tutorial in simulation, workload list-append",
        "Torn unit",
        "What proves it",
        "seamark replay store",
        "TUT-4",
    ):
        assert needed in text


def test_one_bug_is_one_short_page(seamark: Seamark, tmp_path: Path, browser: Browser) -> None:
    """The run of `make demo`: seven findings, all of one bug."""
    assert seamark("run", *DEMO).code == 1
    (run,) = (tmp_path / "store" / "ndb").iterdir()
    assert Digest(templates=of_templates(), report=of_report(run)) == stored(), "README's picture is old: make picture"
    html = run / "report.html"
    probed = browser.probe(html, width=1280)
    assert probed.height <= 6_000
    assert html.stat().st_size <= 700_000
    assert probed.contrasts == {"light": [], "dark": []}
    assert probed.missing_anchors == []
    assert browser.probe(html).scroll_width == 390
    text = html.read_text(encoding="utf-8")
    assert text.count("The messages of that moment") == 1
    assert "<h1>Epoch " in text  # No bare number of 64 bits.
    before = re.sub(r'<path class="m .*?</path>', "", text, flags=re.DOTALL).split("Raw records")[0]
    assert "4294967" not in before  # But in messages and records, which are as they were sent.
    first = re.sub(r"<[^>]+>", " ", text[text.index("<h1>") : text.index('class="strip"')])
    for told in ("promised NDB-G7", "broken Missing event", "why 4.", "when at 4.", "tested ndb in simulation"):
        assert told in " ".join(first.split())  # All in the first box.


def test_a_vacuous_run_says_what_was_too_little(seamark: Seamark, tmp_path: Path, browser: Browser) -> None:
    outcome = seamark("run", "--cluster", "tutorial", "--seed", "3", "--time", "3", "--rate", "5", "--engine", "local")
    html = run_page(tmp_path, outcome, code=3)
    assert_readable(browser.probe(html))
    assert "fewer than 20" in html.read_text(encoding="utf-8")


def test_a_run_that_the_harness_spoiled_says_so(
    seamark: Seamark, tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.run.running, "CHILDREN", {"sim": (BROKEN_CHILD, "SIGKILL:load:50")})
    html = run_page(tmp_path, seamark("run", "--seed", str(SEED), *SMALL), code=4)
    assert_readable(browser.probe(html))
    text = html.read_text(encoding="utf-8")
    assert "killed by signal 9" in text
    assert "The run did not come to its end" in text


def test_many_runs_are_one_page_sorted_by_finding(seamark: Seamark, tmp_path: Path, browser: Browser) -> None:
    outcome = seamark("run", "--bug", "torn-watermark", "--seed", "1", "--count", "2", "--jobs", "2", *USUAL, *SMALL)
    (batch,) = (tmp_path / "store" / "batches").iterdir()
    assert f"open    {batch.relative_to(tmp_path)}/report.html" in outcome.out
    assert_readable(browser.probe(batch / "report.html"))
    text = (batch / "report.html").read_text(encoding="utf-8")
    for run in (tmp_path / "store" / "tutorial").iterdir():
        assert f'href="../../tutorial/{run.name}/report.html"' in text
    assert (batch / "junit.xml").read_bytes().count(b"<testcase") == CASES  # One for each promise, over all runs.


def history(*keys: str) -> str:
    """Of each key two reads that contradict each other, as EDN."""
    lines = []
    for number, key in enumerate(keys):
        shown = "".join(f"\\u{ord(sign):04x}" if not sign.isprintable() else sign for sign in key).replace('"', '\\"')
        for process, value, read in ((0, 1, None), (1, 2, None), (0, None, "[1 2]"), (1, None, "[2 1]")):
            mops = f'[[:append "{shown}" {value}]]' if value else f'[[:r "{shown}" {read}]]'
            client = process + 2 * number
            lines += [f"{{:type {kind} :process {client} :f :txn :value {mops}}}" for kind in (":invoke", ":ok")]
    return "\n".join(lines)


@pytest.mark.parametrize("key", HOSTILE.values(), ids=list(HOSTILE))
def test_a_history_from_elsewhere_has_a_page_where_it_was_asked_for(seamark: Seamark, tmp_path: Path, key: str) -> None:
    (tmp_path / "hostile.edn").write_text(history(key), encoding="utf-8")
    outcome = seamark("check", "hostile.edn", "--engine", "local", "--html", "out.html")
    assert outcome.code == 1
    assert "open    out.html" in outcome.out
    html = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert len(html) < 100_000
    assert "seamark check hostile.edn" in html
    assert "- judge: `seamark check hostile.edn`" in html, "the issue says how to repeat it, too"
    assert "What proves it" in html
    assert html.count("<script") == html.count("</script") == 2
    assert "<img" not in html
    assert "onload='" not in html
    assert ("1,000,000 characters" in html) == (len(key) == 1_000_000)
    assert all(sign.isprintable() or sign == "\n" for sign in html)


def test_keys_that_want_more_than_to_be_shown_are_shown(seamark: Seamark, tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "hostile.edn").write_text(history(*HOSTILE.values()), encoding="utf-8")
    assert seamark("check", "hostile.edn", "--engine", "local", "--html", "out.html").code == 1
    assert_readable(browser.probe(tmp_path / "out.html"))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_no_field_of_a_report_takes_the_page_over(tmp_path: Path, text: str) -> None:
    finding = FindingRow(fingerprint=text, anomaly=text, checker=text, sentence=text, promise=text)
    report = Report(verdict="invalid", exit_code=1, reason=text, run=text, cluster=text, bugs=(text,), goals={text: 1},
                    drawn={text: text}, excused=(text,), findings=(finding,), seconds={text: 1.0})  # fmt: skip
    html = page(report)
    assert len(html) < 200_000
    assert TAKE_OVER not in html
    assert html.count("<script") == html.count("</script") == 2
    assert "<img" not in html
    assert "onload='" not in html
    assert all(sign.isprintable() or sign == "\n" for sign in html)


def test_a_page_that_cannot_be_written_is_a_mistake_of_ours_in_one_line(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "some.edn").write_text("{:type :invoke :process 0 :f :txn :value [[:r 1 nil]]}", encoding="utf-8")
    outcome = seamark("check", "some.edn", "--engine", "local", "--html", "nowhere/page.html")
    assert outcome.code == 64
    assert "nowhere/page.html: cannot be written" in outcome.line


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", "a\ud800b")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "a\\ud800b"


def test_a_job_of_github_gets_annotations_and_tables_and_json_stays_alone(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.edn").write_text(history("k"), encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    quiet = seamark("check", "some.edn", "--engine", "local")
    assert "::error" not in quiet.out + quiet.err
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    outcome = seamark("check", "some.edn", "--engine", "local")
    assert outcome.out.count("::error title=Contradictory orders (incompatible-order)::") == 1
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "| Contradictory orders \\(incompatible-order\\) | strict-serializable |" in summary
    as_json = seamark("check", "some.edn", "--engine", "local", "--json")
    assert as_json.json["exit_code"] == outcome.code == 1
    assert as_json.err.count("::error title=Contradictory orders (incompatible-order)::") == 1


def test_a_run_has_its_cases_for_other_tools(seamark: Seamark, tmp_path: Path) -> None:
    html = run_page(
        tmp_path,
        seamark("run", "--cluster", "tutorial", "--seed", "3", "--time", "3", "--rate", "5", "--engine", "local"),
        code=3,
    )
    text = html.with_name("junit.xml").read_text(encoding="utf-8")
    assert text.count("<testcase") == text.count("<skipped") == CASES  # Nothing passed.
    assert 'failures="0"' in text


def test_a_drawing_with_a_bug_hides_no_finding(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError("spoiled for a test")

    monkeypatch.setattr(harness.report.findings.story, "overview", broken)
    outcome = seamark(
        "run", "--cluster", "tutorial", "--bug", "torn-watermark", "--seed", "1", "--time", "8", "--engine", "local"
    )
    html = run_page(tmp_path, outcome, code=1).read_text(encoding="utf-8")
    assert "Nothing is drawn: ZeroDivisionError: spoiled for a test" in html
    assert "Torn unit" in html


def test_the_page_of_a_history_from_elsewhere_repeats_what_was_asked(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "a history.edn").write_text(history("x"), encoding="utf-8")
    options = ("--model", "read-committed", "--engine", "local", "--html", "out.html")
    outcome = seamark("check", "a history.edn", *options)
    assert outcome.code == 1
    html = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert html.count("seamark check &#39;a history.edn&#39; --model read-committed") == 3
