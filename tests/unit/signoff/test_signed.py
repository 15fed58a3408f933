"""What a sign-off says: rates, power, behaviour; and its two documents, whatever is in a name."""

import re
from datetime import date

import pytest
from scipy.stats import binomtest

from harness.campaign.calibration.document import BugCell, Calibration, Interval
from harness.campaign.document import Numbers
from harness.signoff.behaviour import behaviour_rows
from harness.signoff.decision import signed
from harness.signoff.markdown import signoff_markdown
from harness.signoff.page import signoff_page
from harness.signoff.power import power_rows
from harness.signoff.statistics import chance_to_see, percent, rate
from tests.unit.signoff.sweeps import cell, finding, promise, sweep

HOSTILE = ("<script>taken = 1</script><img src=x onerror=taken>", "\x1b[2JGO", "\u202eOG", "a|b`c*d", "k" * 100_000)


def bug(name: str, hits: int, runs: int, low: float, value: float, cluster: str = "ndb") -> BugCell:
    return BugCell(
        cluster=cluster, bug=name, description="d", key="k", runs=runs, hits=hits, errors=0, rate=value,
        interval=Interval(low=low, high=1.0), median_seeds=None, promise="NDB-G8", anomaly=None, checker=None, graph=0,
        rules=0, client=0, state=0, is_client_more=False,
    )  # fmt: skip


@pytest.mark.parametrize(("seen", "runs"), [(1, 8), (5, 200), (200, 200), (3, 1000)])
def test_a_rate_has_clopper_s_and_pearson_s_interval(seen: int, runs: int) -> None:
    expected = binomtest(seen, runs).proportion_ci(0.95, method="exact")
    found = rate(seen, runs)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-5)


def test_what_was_never_seen_is_below_three_of_all_runs() -> None:
    assert rate(0, 600).text == "0 of 600 runs (95 %: 0 to 0.5 %)"
    assert rate(0, 2).text == "0 of 2 runs (95 %: 0 to 100 %)"
    assert rate(2, 16).text == "2 of 16 runs (95 %: 1.6 to 38 %)"
    assert rate(0, 0).text == "no run"
    assert chance_to_see(3 / 600, 600) == pytest.approx(0.95, abs=0.001)


@pytest.mark.parametrize(
    ("chance", "message"), [(1.0, "99.9 %"), (0.9999, "99.9 %"), (0.995, "99.5 %"), (0.95, "95 %"), (0, "0 %")]
)
def test_no_chance_is_told_as_certain(chance: float, message: str) -> None:
    assert percent(chance) == message


def test_power_is_the_chance_that_these_runs_show_a_bug_and_the_weakest_comes_first() -> None:
    every = (bug("often", 5, 7, 0.3, 0.6), bug("seldom", 5, 200, 0.01, 0.02), bug("never", 0, 200, 0.0, 0.0))
    calibration = Calibration(samplings=(), bugs=(*every, bug("x", 5, 7, 0.3, 0.6, "other")), correct=())
    rows = power_rows(calibration, sweep())
    assert [row.bug for row in rows] == ["never", "seldom", "often"]
    assert rows[0].chance is None
    assert rows[1].chance == pytest.approx(1 - 0.98**100)
    assert rows[1].least == pytest.approx(1 - 0.99**100)
    assert power_rows(None, sweep()) == []


def test_behaviour_that_became_worse_by_more_than_half_is_marked() -> None:
    slow = Numbers(recovery_s_median=0.7, recovery_s_worst=2.9, unknown_share=0.012, ok_per_s=30.0)
    rows = behaviour_rows(sweep(), sweep(cells=(cell(numbers=slow),)))
    assert {row.what: row.is_worse for row in rows} == {
        "recovery, median": True,
        "recovery, worst": False,
        "operations of unknown outcome": False,
        "operations ok": True,
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_both_documents_show_any_text_and_obey_none(text: str) -> None:
    found = finding(text[:64], sentence=text, anomaly=text, promise=text, command=text)
    broken = promise(text, verdict="violated", text=text, source=text)
    before = sweep(versions={text: text}, name=text)
    after = sweep(found, promises=(broken,), cells=(cell(bugs=(text,)),), name=text)
    signoff = signed(before, after, (), None, date(2026, 11, 23))
    html, markdown = signoff_page(signoff, "f" * 64), signoff_markdown(signoff, "f" * 64)
    assert html.count("<script") == html.count("</script") == 2
    assert "<img" not in html
    assert "<img" not in re.sub("`[^`]*`", "", markdown), "outside of code"
    assert all(sign.isprintable() or sign == "\n" for sign in html + markdown)
    assert max(len(html), len(markdown)) < 100_000
    assert "f" * 64 in html
    assert "f" * 64 in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(rows) > 20
    headings = [line for line in markdown.splitlines() if line.startswith("#")]
    assert len(headings) == 9
