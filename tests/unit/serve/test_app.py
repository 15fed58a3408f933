"""The pages as text: what they say, that hostile text is only shown, and that trouble is one sentence."""

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from harness.campaign.ledger.attempts import Attempt, mark
from harness.campaign.ledger.rows import Row, RowsFile, row_of
from harness.report.model import FaultRow, FindingRow, PromiseRow, Report
from harness.serve.app import Pages
from harness.serve.compared import ROWS_MAX
from harness.serve.listing import PAGE_ROWS
from tests.unit.serve.stores import TORN, journal, judged, planned, report

TAKE_OVER = "<script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"
HOSTILE = {
    "script": TAKE_OVER,
    "attribute": "\"' onload='window.taken = 1' x=\"",
    "colour": "\x1b[2J\x1b[32mPASS",
    "right-to-left": "\u202e\u2066SSAP",
    "megabyte": "k" * 1_000_000,
}
FIRST, SECOND = "tutorial/20261123T010203Z-7", "tutorial/20261123T010204Z-8"
PAGES = ("/runs", f"/runs/{FIRST}", f"/compare?run={FIRST}&run={SECOND}", "/sweeps", "/trends", "/calibration")


def browsing(store: Path) -> TestClient:
    return TestClient(Pages(store).application())


def hostile_report(text: str) -> Report:
    finding = FindingRow(fingerprint=text, anomaly=text, checker=text, sentence=text, promise=text, ops=(1,))
    promise = PromiseRow(id=text, verdict="violated", witnesses=1, text=text, source=text)
    fault = FaultRow(kind=text, planned=1, begun=1, effective=1, ok=1, fail=1, info=1)
    known = {"bugs": (text,), "cluster": text, "workload": text, "drawn": {text: text}, "versions": {text: text}}
    return report(finding, reason=text, promises=(promise,), faults=(fault,), run=text, code=text, **known)


def handlers(html: str) -> list[str]:
    """The attributes of a page that would run something, or style something."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(name for name, _ in attrs if name.startswith("on") or name == "style")

    Reader().feed(html)
    return found


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_text_of_a_history_is_shown_and_does_nothing(tmp_path: Path, text: str) -> None:
    judged(tmp_path, hostile_report(text), FIRST.partition("/")[2])
    judged(tmp_path, report(TORN), SECOND.partition("/")[2])
    web = browsing(tmp_path)
    for place in PAGES:
        html = web.get(place, params=None).text
        assert len(html) < 200_000
        assert html.count("<script") == html.count("</script") == 1
        assert "<img" not in html
        assert handlers(html) == []
        assert all(sign.isprintable() or sign == "\n" for sign in html)
    assert TAKE_OVER not in web.get("/runs", params={"finding": TAKE_OVER, "cluster": TAKE_OVER}).text


def test_folders_of_any_name_are_shown(tmp_path: Path) -> None:
    names = (
        "20261123T010203Z-<b>",
        "20261123T010203Z-a b?c#d&e",
        "20261123T010203Z-\u202ex",
    )
    for name in names:
        judged(tmp_path, report(), name)
    (tmp_path / "tutorial" / "20261123T010203Z-\udcff").mkdir()
    web = browsing(tmp_path)
    html = web.get("/runs").text
    links = re.findall(r'<a href="(/runs/tutorial/[^"]+)"', html)
    assert len(links) == 4, links
    assert [web.get(link).status_code for link in links].count(200) == 3
    assert "<b>" not in html.partition("<main")[2]


def test_a_run_s_page_has_its_findings_and_what_can_be_downloaded(tmp_path: Path) -> None:
    journal(judged(tmp_path, report(TORN)))
    web = browsing(tmp_path)
    html = web.get(f"/runs/{FIRST}").text
    for needed in ("Half of it arrived.", "breaks T-4", "finding=f00d", "history.jsonl", "history.edn", "report.html"):
        assert needed in html
    whole, part = (web.get(f"/runs/{FIRST}/history.jsonl{query}") for query in ("", "?finding=f00d"))
    assert (len(whole.text.splitlines()), len(part.text.splitlines())) == (7, 3)
    assert part.headers["content-disposition"].endswith("20261123T010203Z-7-finding.jsonl")
    assert web.get(f"/runs/{FIRST}/history.edn?from=3&to=3").text.count(":invoke") == 1
    assert web.get(f"/store/{FIRST}/journal.log").headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    ("address", "status", "message"),
    [
        ("/nowhere", 404, "leads nowhere"),
        ("/runs/tutorial/nothing", 404, "the store has no tutorial/nothing"),
        (f"/runs/{FIRST}/history.xml", 404, "jsonl or edn"),
        (f"/runs/{FIRST}/history.edn", 500, "has no history yet"),
        (f"/runs/{FIRST}/history.edn?from=x", 404, "from and to are seconds"),
        (f"/runs/{FIRST}/history.edn?from=nan", 404, "from and to are seconds"),
        (f"/runs/{FIRST}/history.edn?finding=none", 404, "no finding of that fingerprint"),
        (f"/compare?run={FIRST}", 200, "one is chosen"),
        ("/compare", 200, "none is chosen"),
        (f"/compare?run={FIRST}&run={SECOND}", 404, "has not been judged yet"),
        (f"/compare?run={FIRST}&run=x", 404, "is no run of this store"),
    ],
)
def test_what_cannot_be_shown_is_told_in_a_sentence(tmp_path: Path, address: str, status: int, message: str) -> None:
    judged(tmp_path, report(TORN))
    planned(tmp_path)
    answer = browsing(tmp_path).get(address)
    assert (answer.status_code, message in answer.text) == (status, True), answer.text
    assert "Traceback" not in answer.text


def test_a_run_that_cannot_be_read_has_a_page_that_says_why(tmp_path: Path) -> None:
    (judged(tmp_path, report()) / "report.json").write_text('{"verdict": "val')
    answer = browsing(tmp_path).get(f"/runs/{FIRST}")
    assert answer.status_code == 200
    assert "damaged or written in part" in answer.text


def test_a_page_with_a_fault_of_ours_is_one_page_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("spoiled for a test")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.serve.app.trends", broken)
    web = browsing(tmp_path)
    answer = web.get("/trends")
    assert answer.status_code == 500
    assert "ZeroDivisionError: spoiled for a test" in answer.text
    assert web.get("/runs").status_code == 200


def test_two_runs_are_compared_by_what_differs(tmp_path: Path) -> None:
    promise = PromiseRow(id="T-4", verdict="holds", witnesses=9, text="t", source="s")
    common = {"versions": {"seamark": "0.1"}, "drawn": {"keys": 3}}
    judged(tmp_path, report(promises=(promise,), **common), FIRST.partition("/")[2])
    judged(tmp_path, report(TORN, seed=8, **common), SECOND.partition("/")[2])
    html = browsing(tmp_path).get(f"/compare?run={FIRST}&run={SECOND}").text
    assert "Only the second run shows anomalies." in html
    assert "1 differ, 5 are the same" in " ".join(html.split())
    assert "not promised" in html
    same = browsing(tmp_path).get(f"/compare?run={SECOND}&run={SECOND}").text
    assert "one is chosen" in same


def test_a_page_of_a_run_with_very_many_rows_shows_some_and_counts_the_rest(tmp_path: Path) -> None:
    promises = [
        PromiseRow(id=f"P{number}", verdict="holds", witnesses=1, text="t", source="s") for number in range(1000)
    ]
    findings = [
        FindingRow(fingerprint="f", anomaly=f"a{number}", checker="c", sentence="s", promise="P1")
        for number in range(1000)
    ]
    for name in (FIRST, SECOND):
        drawn = {f"x{number}": f"{name} {number}" for number in range(1000)}
        judged(tmp_path, report(*findings, promises=promises, drawn=drawn), name.partition("/")[2])
    web = browsing(tmp_path)
    html = web.get(f"/compare?run={FIRST}&run={SECOND}").text
    assert html.count("and 800 more: see its report.json") == 3
    assert web.get(f"/runs/{FIRST}").text.count("and 800 more: see its report.json") == 1


def test_runs_with_more_rows_than_a_page_has_time_for_are_not_compared(tmp_path: Path) -> None:
    judged(tmp_path, report(drawn={f"x{number}": number for number in range(ROWS_MAX + 1)}), FIRST.partition("/")[2])
    judged(tmp_path, report(), SECOND.partition("/")[2])
    answer = browsing(tmp_path).get(f"/compare?run={FIRST}&run={SECOND}")
    assert answer.status_code == 500
    assert "one of these runs has 5,001 settings; runs with up to 5,000 can be compared" in answer.text


def test_a_report_that_is_too_large_for_a_page_can_still_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(tmp_path, report(TORN))
    monkeypatch.setattr("harness.serve.places.VALUES_MAX", 10)
    answer = browsing(tmp_path).get(f"/runs/{FIRST}")
    assert answer.status_code == 200
    assert "values, and a page is made from up to 10" in answer.text
    assert f"/store/{FIRST}/report.html" in answer.text


BATCH = '{"verdict": "valid", "reason": "3 runs", "planned": 3, "counts": {"valid": 3}, "runs": []}'
CLASS = '{"fingerprint": "f", "anomaly": "torn-unit", "runs": 1, "judged": 8}'
HUNT = '{"verdict": "invalid", "reason": "run 5 shows G0", "planned": 1000, "counts": {"valid": 4, "invalid": 1}}'
NIGHT = '{"verdict": "invalid", "reason": "r", "planned": 9, "counts": {"valid": 7, "invalid": 1}, "findings": ['


def test_sweeps_batches_and_hunts_are_listed_with_those_that_did_not_end(tmp_path: Path) -> None:
    for place, name, text in (
        ("batches/20261121T000000Z-1", "report.json", BATCH),
        ("sweeps/nightly/20261122T000000Z-1", "sweep.json", f"{NIGHT}{CLASS}]}}"),
        ("sweeps/nightly/20261123T000000Z-1", "rows.jsonl", "{}"),
        ("sweeps/nightly/20261124T000000Z-1", "sweep.json", "{"),
        ("hunts/ndb/20261120T000000Z-1", "hunt.json", HUNT),
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / name).write_text(text)
        (tmp_path / place / "page.html").write_text("<title>t</title>")
    web = browsing(tmp_path)
    html = " ".join(web.get("/sweeps").text.split())
    assert html.index("UNREADABLE</span>") < html.index("is damaged") < html.index("NOT JUDGED</span>")
    resume = f"seamark sweep --resume {tmp_path}/sweeps/nightly/20261123T000000Z-1 goes on"
    assert html.index(resume) < html.index("8 of 9") < html.index("3 runs")
    assert html.index("3 runs") < html.index("hunt ndb") < html.index("run 5 shows G0") < html.index("5 of 1,000")
    assert "torn-unit in 1 of 8" in html
    assert web.get("/store/sweeps/nightly/20261122T000000Z-1/page.html").status_code == 200
    assert web.get("/store/hunts/ndb/20261120T000000Z-1/page.html").status_code == 200
    assert "nightly" in web.get("/trends").text


def test_trends_count_runs_by_day_and_anomalies_by_runs(tmp_path: Path) -> None:
    for number, content in enumerate((report(), report(TORN), report(TORN), report(verdict="vacuous"))):
        judged(tmp_path, content, f"2026112{number // 2}T000000Z-{number}")
    html = " ".join(browsing(tmp_path).get("/trends").text.split())
    assert "2026-11-20: 2 runs, 1 ANOMALY, 1 PASS" in html
    assert "2026-11-21: 2 runs, 1 ANOMALY, 1 VACUOUS" in html
    assert "2 of 3" in html
    assert "66.7 %" in html


def sweep_rows(store: Path, reports: list[Report], night: str = "20261122T020000Z-1") -> Path:
    """The rows of a sweep with those reports, the last one tried twice if it is an error."""
    folder = store / "sweeps" / "nightly" / night
    folder.mkdir(parents=True)
    with RowsFile(folder, Row, "0" * 64) as file:
        for seed, content in enumerate(reports):
            row = row_of(content, cell=0, seed=seed, attempt=1)
            file.append(msgspec.structs.replace(row, finished_utc="2026-11-22T03:00:00Z"))
    return folder / "rows.jsonl"


def test_trends_count_the_runs_of_sweeps_by_their_rows(tmp_path: Path) -> None:
    red, planted = report(TORN), report(TORN, bugs=("late-row",))
    sweep_rows(tmp_path, [red, *(report() for _ in range(45)), report(verdict="error"), planted, planted])
    kept = judged(tmp_path, red, "20261122T020000Z-0")
    mark(kept, Attempt(campaign="0" * 16, numbers=(0, 0, 1)))
    html = " ".join(browsing(tmp_path).get("/trends").text.split())
    assert "2026-11-22: 46 runs, 1 ANOMALY, 45 PASS" in html
    assert "1 of 46" in html
    assert "Left out: 2 runs with a planted bug; runs of hunts." in html


def test_trends_leave_out_runs_that_no_seed_drew(tmp_path: Path) -> None:
    judged(tmp_path, report(), "20261122T000000Z-1")
    judged(tmp_path, report(TORN, bugs=("late-row",)), "20261122T000000Z-2")
    judged(tmp_path, report(TORN, is_given=True), "20261122T000000Z-3")
    (judged(tmp_path, report(TORN), "20261122T000000Z-4") / "shrunk.json").write_text("{}")
    html = " ".join(browsing(tmp_path).get("/trends").text.split())
    assert "2026-11-22: 1 runs, 1 PASS" in html
    assert "1 run with a planted bug; 2 runs of a given plan" not in html  # In order of the alphabet.
    assert "Left out: 2 runs of a given plan or given operations, such as shrunk and repeated ones; 1 run with" in html
    assert "torn-unit" not in html


def test_rows_that_are_damaged_are_counted_up_to_the_damage(tmp_path: Path) -> None:
    path = sweep_rows(tmp_path, [report(), report()])
    path.write_bytes(path.read_bytes() + b"[]\n")
    html = " ".join(browsing(tmp_path).get("/trends").text.split())
    assert "2026-11-22: 2 runs, 2 PASS" in html
    assert "Not counted: nightly/20261122T020000Z-1/rows.jsonl:3: is no row" in html
    assert str(tmp_path) not in html.partition("Not counted")[2]


def test_runs_and_anomalies_are_shown_by_release(tmp_path: Path) -> None:
    old, new = {"name": "Shop", "version": "8.4.0"}, {"name": "Shop", "version": "8.4.1"}
    judged(tmp_path, report(sut=old), "20261122T000000Z-1")
    judged(tmp_path, report(TORN, sut=new), "20261123T000000Z-2")
    judged(tmp_path, report(sut=new), "20261123T000000Z-3")
    web = browsing(tmp_path)
    html = " ".join(web.get("/trends").text.split())
    assert "Shop 8.4.0: 0 of 1" in html
    assert "Shop 8.4.1: 1 of 2" in html
    web.get("/runs?page=2")  # Reads all.
    assert '<option value="Shop 8.4.1">Shop 8.4.1 (2)</option>' in web.get("/runs").text
    chosen = web.get("/runs", params={"release": "Shop 8.4.0"}).text
    assert "20261122T000000Z-1" in chosen
    assert "20261123T000000Z-2" not in chosen


CALIBRATED = """{
"schema": 2, "samplings": [{"cluster": "ndb", "versions": {}, "time_s": 20.0, "runs_max": 200, "hits_max": 5}],
"correct": [], "bugs": [{
"cluster": "ndb", "bug": "late-row", "description": "<b>d</b>", "key": "k", "runs": 90, "hits": 5,
"errors": 0, "rate": 0.045,
"interval": {"low": 0.018, "high": 0.124}, "median_seeds": 16, "promise": "NDB-G8", "anomaly": "a", "checker": "c",
"graph": 3, "rules": 5, "client": 0, "state": 0, "is_client_more": false}]}"""


def test_the_calibration_of_a_store_is_shown(tmp_path: Path) -> None:
    web = browsing(tmp_path)
    assert "No calibration is in this store" in web.get("/calibration").text
    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration" / "calibration.json").write_text(CALIBRATED)
    html = " ".join(web.get("/calibration").text.split())
    for needed in ("late-row", "5 of 90", "1.8% to 12.4%", "&lt;b&gt;d&lt;/b&gt;", "graph, rules", "breaks NDB-G8"):
        assert needed in html
    (tmp_path / "calibration" / "calibration.json").write_text("{")
    assert web.get("/calibration").status_code == 500


def test_long_lists_have_pages_that_lead_to_each_other(tmp_path: Path) -> None:
    for number in range(PAGE_ROWS + 1):
        night = tmp_path / "sweeps" / "nightly" / f"20261122T0000{number:02}Z-1"
        night.mkdir(parents=True)
        (night / "sweep.json").write_text(f"{NIGHT}]}}")
        finding = msgspec.structs.replace(TORN, anomaly=f"a{number}")
        judged(tmp_path, report(finding), f"20261122T0000{number:02}Z-{number}")
    web = browsing(tmp_path)
    web.get("/runs?page=2")
    places = (("/runs", "page"), ("/sweeps", "page"), ("/trends", "anomalies"), ("/trends", "nights"))
    for address, name in places:
        first, second = (web.get(f"{address}?{name}={number}").text for number in (1, 2))
        assert re.search(rf'rel="next" href="{address}\?[^"]*{name}=2', first)
        assert re.search(rf'rel="prev" href="{address}\?[^"]*{name}=1', second)
        assert "51 to 51 of 51" in second
