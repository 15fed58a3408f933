"""What others read of a report: JUnit, annotations and summaries of GitHub, an issue, a scale."""

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.verdict import Step, Verdict
from harness.report.batch_page import Summary, batch_page, batch_summary
from harness.report.findings.headlines import headline
from harness.report.github import ANNOTATIONS_MAX, SUMMARY_MAX, TEXT_MAX, add_summary, annotations, is_github
from harness.report.junit import junit
from harness.report.markdown import escaped, issue, summary
from harness.report.model import FaultRow, FindingRow, Report
from harness.report.page import Guide, page
from harness.report.pictures.scale import TimeAxis, amount, duration, nice_ceiling
from harness.report.screen import commands
from tests.unit.report.conftest import promise, report

RUN = {"run": "store/x/1", "runtime": "sim", "cluster": "x", "workload": "w", "seed": 7}


def finding(anomaly: str = "G0", promised: str | None = "P-1", sentence: str = "It broke.") -> FindingRow:
    return FindingRow(fingerprint=anomaly, anomaly=anomaly, checker="c", sentence=sentence, promise=promised)


def invalid(*found: FindingRow) -> Report:
    return report(Verdict.INVALID, findings=found, promises=(promise(verdict="violated"), promise("P-2")), **RUN)


def cases(*reports: Report) -> list[tuple[str, list[str]]]:
    root = ElementTree.fromstring(junit(reports, suite="all"))  # noqa: S314  Our own.
    (suite,) = root
    tags = [[child.tag for child in case if child.tag != "properties"] for case in suite]
    found = [(case.attrib["name"].split(":")[0], each) for case, each in zip(suite, tags, strict=True)]
    assert suite.attrib["tests"] == str(len(found))
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert suite.attrib[name] == str(sum(kind in tags for _, tags in found))
    return found


def test_a_broken_promise_is_a_failure_and_one_that_holds_passes() -> None:
    assert cases(invalid(finding())) == [("P-1", ["failure"]), ("P-2", []), ("the run as a whole", [])]


@pytest.mark.parametrize(
    ("verdict", "whole"), [(Verdict.VACUOUS, "skipped"), (Verdict.UNKNOWN, "skipped"), (Verdict.ERROR, "error")]
)
def test_in_a_run_that_is_no_pass_nothing_passes(verdict: Verdict, whole: str) -> None:
    found = cases(report(verdict, promises=(promise(), promise("P-2", "not-exercised"))))
    assert found == [("P-1", ["skipped"]), ("P-2", ["skipped"]), ("the run as a whole", [whole])]


def test_a_run_that_passes_passes_but_for_what_was_not_exercised() -> None:
    found = cases(report(Verdict.VALID, promises=(promise(), promise("P-2", "not-exercised"))))
    assert found == [("P-1", []), ("P-2", ["skipped"]), ("the run as a whole", [])]


def test_a_run_without_any_promise_is_a_case_all_the_same() -> None:
    assert cases(report(Verdict.ERROR)) == [("the run as a whole", ["error"])]


def test_a_batch_has_one_case_for_each_promise_and_fails_it_if_one_run_does() -> None:
    passes = report(Verdict.VALID, promises=(promise(), promise("P-2", "not-exercised")), **RUN)
    assert cases(invalid(finding()), passes) == [("P-1", ["failure"]), ("P-2", []), ("the run as a whole", [])]
    assert cases(passes, passes) == [("P-1", []), ("P-2", ["skipped"]), ("the run as a whole", [])]
    unknown = report(Verdict.UNKNOWN, promises=(promise(verdict="unknown"),), **RUN)
    assert cases(passes, unknown)[0] == ("P-1", ["skipped"])


def test_a_run_that_died_belongs_to_the_cluster_of_the_others() -> None:
    assert cases(invalid(finding()), report(Verdict.ERROR))[-1] == ("the run as a whole", [])
    found = cases(report(Verdict.VALID, promises=(promise(),), **RUN), report(Verdict.ERROR))
    assert found == [("P-1", []), ("the run as a whole", ["error"])]


def named(*reports: Report) -> list[tuple[str, str, dict[str, str]]]:
    """Each case's class, name and properties."""
    (suite,) = ElementTree.fromstring(junit(reports, suite="all"))  # noqa: S314  Our own.
    return [
        (
            case.attrib["classname"],
            case.attrib["name"],
            {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")},
        )
        for case in suite
    ]


def test_names_are_the_same_whatever_the_seed_and_plan_which_are_properties() -> None:
    nights = [
        named(report(Verdict.VALID, promises=(promise(),), plan_sha256=plan * 64, **RUN | {"seed": seed}))
        for seed, plan in ((7, "a"), (8, "b"))
    ]
    assert nights[0][0] == ("x.w", "P-1: It keeps its word.", {"seed": "7", "plan": "a" * 8, "run": "store/x/1"})
    assert [case[:2] for case in nights[0]] == [case[:2] for case in nights[1]]
    assert nights[1][0][2]["seed"] == "8"


def test_a_batch_that_was_too_short_is_skipped_as_a_whole() -> None:
    passes = report(Verdict.VALID, promises=(promise(),), **RUN)
    (suite,) = ElementTree.fromstring(junit([passes], suite="all", vacuous="1 of 9 runs"))  # noqa: S314  Our own.
    assert [child.attrib.get("message") for child in suite[-1] if child.tag == "skipped"] == ["vacuous: 1 of 9 runs"]


@given(st.text(max_size=30))
def test_any_text_is_xml_and_says_the_same_in_characters_that_show(text: str) -> None:
    spoiled = report(
        Verdict.ERROR, reason=text, cluster=text, promises=(promise(text),), findings=(finding(text, None, text),)
    )
    root = ElementTree.fromstring(junit([spoiled], suite=text))  # noqa: S314  Our own.
    for element in root.iter():
        for shown in (*element.attrib.values(), (element.text or "").strip()):
            assert all(sign.isprintable() or sign == "\n" for sign in shown)


def test_each_class_of_finding_is_annotated_once() -> None:
    lines = annotations([invalid(finding(), finding("G1c", None)), invalid(finding()), report(Verdict.VACUOUS)])
    assert len(lines) == 3
    title, text = "Dirty write (G0) in 2 of 3 runs", "It broke. Repeat it: seamark replay store/x/1"
    assert lines[0].startswith(f"::error title={title}::{text}")
    assert lines[1].startswith("::warning title=Circular information flow (G1c) in 1 of 3 runs::")
    assert lines[2] == "::warning title=VACUOUS in 1 of 3 runs::because"
    assert annotations([report(Verdict.VALID)]) == []


def test_a_long_sentence_is_cut_and_its_command_is_whole() -> None:
    (line,) = annotations([invalid(finding("G0", sentence="very " * 400 + "long"))])
    assert line.endswith("... Repeat it: seamark replay store/x/1")
    assert len(line) < TEXT_MAX + 100


def test_ten_annotations_are_the_most_and_the_last_counts_the_rest() -> None:
    lines = annotations([invalid(*(finding(f"a{number:02}") for number in range(30)))])
    assert len(lines) == ANNOTATIONS_MAX
    assert lines[-1] == "::warning title=seamark::21 more are in the report"


@given(st.text(max_size=40))
def test_no_text_becomes_a_command_of_its_own(text: str) -> None:
    (line,) = annotations([report(Verdict.INVALID, findings=(finding(f"x{text}", sentence=text),))])
    assert "\n" not in line
    assert "\r" not in line
    title, _, message = line.removeprefix("::error title=").partition("::")
    assert ":" not in title
    assert "," not in title
    assert all(message[place + 1 : place + 3] == "25" for place, sign in enumerate(message) if sign == "%")


def test_a_summary_is_appended_where_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    for text in ("one\n", "two\n"):
        add_summary({"GITHUB_STEP_SUMMARY": str(path)}, text)
    assert path.read_text() == "one\ntwo\n"
    add_summary({}, "nowhere")
    add_summary({"GITHUB_STEP_SUMMARY": str(tmp_path)}, "a folder")
    add_summary({"GITHUB_STEP_SUMMARY": str(path)}, "x\n" * SUMMARY_MAX)
    assert path.stat().st_size < SUMMARY_MAX + 100
    assert "cut here" in path.read_text()
    assert is_github({"GITHUB_ACTIONS": "true"})
    assert not is_github({})


def test_the_summary_has_the_tables() -> None:
    fault = FaultRow(kind="pause", planned=2, begun=2, effective=1, ok=5, fail=0, info=1)
    text = summary(report(Verdict.INVALID, findings=(finding(),), promises=(promise(),), faults=(fault,), **RUN))
    assert "| Dirty write \\(G0\\) | P-1 | 1 | It broke. |" in text
    assert "| pause | 2 | 1 | 5 | 0 | 1 |" in text
    assert "| P-1 | It keeps its word. | holds | 12 |" in text
    assert "`seamark replay store/x/1" in text


@given(st.text(max_size=40))
def test_text_in_markdown_is_text(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown
    assert "<" not in shown
    assert "@" not in shown
    for place, sign in enumerate(shown):
        if sign in "*_`[]()|#~":
            before = shown[:place]
            is_entity = sign == "#" and before.endswith("&")
            assert is_entity or (len(before) - len(before.rstrip("\\"))) % 2 == 1, shown


def test_an_issue_has_the_proof_and_how_to_repeat_it() -> None:
    steps = tuple(Step(source=a, target=b, relation="rw", sentence="so") for a, b in (("T1", "T2"), ("T2", "T1")))
    found = FindingRow(fingerprint="f", anomaly="G2", checker="c", sentence="s", promise="P-1", cycle=steps)
    run = report(Verdict.INVALID, findings=(found,), promises=(promise(),), **RUN)
    text = issue(run, found, (), repeating=commands(run))
    for needed in (
        "Breaks **P-1**",
        "1. T1 comes before T2",
        "3. So each comes before itself",
        "seamark replay store/x/1",
        "`7`",
    ):
        assert needed in text


def batch(verdict: Verdict) -> Summary:
    return Summary(verdict=verdict.value, exit_code=verdict.exit_code, reason="2 runs", clause=None, planned=3,
                   stopped="an anomaly was found", seconds=3.0)  # fmt: skip


def test_a_batch_is_sorted_by_finding_and_links_its_runs(tmp_path: Path) -> None:
    runs = [invalid(finding("rare", None)), invalid(finding("G0"), finding("rare", None))]
    runs += [report(Verdict.VALID, promises=(promise(),), **RUN | {"run": str(tmp_path / "a b" / "2"), "seed": 8})]
    html = batch_page(batch(Verdict.INVALID), runs, tmp_path / "batches" / "1")
    assert "<h1>It broke.</h1>" in html
    assert re.search(r"<dt>promised</dt><dd><b>P-1</b> ", html)
    assert re.search(r"<b>Dirty write \(G0\)</b>: .+>in 1 of 3 runs: ", html)
    # Though the other is in more of them: a promise is broken.
    assert html.index("<b>Dirty write (G0)</b>") < html.index("<b>Rare</b>")
    assert 'href="../../a%20b/2/report.html"' in html
    assert "Stopped after 3 of 3 runs: an anomaly was found." in html
    assert "violated 2" in html
    assert re.search(
        r"Next</h3>\s*<p class=.command.><span class=.soft.>Dirty write \(G0\), seed \d+</span><code>seamark ", html
    )
    assert "| Dirty write \\(G0\\) | P-1 | 1 of 3 | It broke. |" in batch_summary(batch(Verdict.INVALID), runs)


def test_of_findings_in_as_many_runs_the_most_frequent_comes_first(tmp_path: Path) -> None:
    once, often = finding("a-once"), msgspec.structs.replace(finding("b-often"), count=9)
    html = batch_page(batch(Verdict.INVALID), [invalid(once, often)], tmp_path)
    assert html.index("<b>B often</b>") < html.index("<b>A once</b>")


def test_a_batch_of_nothing_is_a_page() -> None:
    assert "Not enough was tested" in batch_page(batch(Verdict.VACUOUS), [], Path())


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_ticks_are_few_round_and_inside(low: int, span: int) -> None:
    ticks = TimeAxis(low_ns=low, high_ns=low + span).ticks()
    assert len(ticks) <= 8
    assert all(0 <= tick.at <= 100 for tick in ticks)
    assert len({tick.text for tick in ticks}) == len(ticks)


@given(st.floats(1e-6, 1e9))
def test_a_ceiling_is_above_and_near(value: float) -> None:
    assert value * (1 - 1e-9) <= nice_ceiling(value) <= 2.5 * value * (1 + 1e-6)


def test_lengths_of_time_have_the_unit_that_suits_them() -> None:
    assert [duration(ns) for ns in (0, 999, 1500, 2_000_000, 43_100_000, 5e9, 4_321e9)] == [
        "0 ns", "999 ns", "1.5 µs", "2 ms", "43.1 ms", "5 s", "4,321 s",
    ]  # fmt: skip


def test_no_number_at_an_axis_has_an_exponent() -> None:
    values = (0, 0.5, 2.5, 100, 100_000, 999_999, 1e6, 2.5e8, 5e9)
    assert [amount(value) for value in values] == [
        "0", "0.5", "2.5", "100", "100,000", "999,999", "1 M", "250 M", "5,000 M",
    ]  # fmt: skip


def test_every_finding_is_on_the_page_and_the_page_says_which_are_not_drawn() -> None:
    html = page(invalid(*(finding(f"a{number:02}", sentence=f"Sentence {number}.") for number in range(30))))
    assert all(f"Sentence {number}." in html for number in range(30))
    assert html.count("Without its records: only the first 12 findings have them.") == 18


def circle(names: Sequence[str], sentence: str) -> FindingRow:
    pairs = zip(names, [*names[1:], *names[:1]], strict=True)
    steps = tuple(Step(source=a, target=b, relation="rw", sentence="because") for a, b in pairs)
    return msgspec.structs.replace(finding("G2", sentence=sentence), cycle=steps)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("T1", "T2"), "T1 and T2 form a cycle: so each comes before itself"),
        (("T1", "T2", "T3", "W s1/7"), "T1, T2, T3 and s1 at position 7 form a cycle: so each comes before itself"),
        (("T1", "T2", "T3", "T4", "T5"), "T1, T2, T3 and 2 more form a cycle: so each comes before itself"),
    ],
)
def test_the_headline_of_a_long_cycle_names_all_of_few_and_counts_the_rest_of_many(
    names: tuple[str, ...], said: str
) -> None:
    assert headline(circle(names, "x" * 261)).startswith(said)
    assert headline(circle(names, "x" * 260)) == "x" * 260
    inferred = f"T1 wrote 2, which counts as later ({'x' * 261}), although T1 ({'y' * 9}) had finished"
    assert (
        headline(circle(names, inferred)) == f"T1 wrote 2, which counts as later, although T1 ({'y' * 9}) had finished"
    )


@pytest.mark.parametrize(("size", "is_told"), [(800, True), (801, False)])
def test_of_a_very_long_sentence_the_page_has_the_steps(size: int, is_told: bool) -> None:
    html = page(invalid(circle(("T1", "T2"), "x" * size)))
    assert (f"<dt>why</dt><dd>{'x' * size}</dd>" in html) == is_told
    assert "<b>T1 comes before T2</b>, because because." in html


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((3,), "3"),
        ((2, 1), "1, 2"),
        ((1, 2, 3), "1–3"),
        ((1, 2, 3, 4, 5, 7, 8, 9), "1–5, 7–9"),
        ((1, 3, 5, 7), "1, 3, 5, 7"),
        ((1, 3, 5, 7, 9, 11), "1, 3, 5, 7, …"),
    ],
)
def test_a_flag_names_no_finding_that_is_elsewhere(numbers: tuple[int, ...], text: str) -> None:
    assert Guide(50.0, numbers).text == text


@pytest.mark.parametrize("verdict", list(Verdict))
def test_each_verdict_has_a_page_that_says_it(verdict: Verdict) -> None:
    html = page(report(verdict, promises=(promise(),), clause="a" if verdict is Verdict.VACUOUS else None))
    assert f">{verdict.word}<" in html
    assert ("The run as a whole is not a pass" in html) == (verdict.exit_code > 1)
    assert "There is no history to draw." in html
