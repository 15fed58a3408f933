"""`seamark serve` as its users have it: in a browser, by keyboard, on a narrow screen, while a run runs."""

import os
import select
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.record.journal import JournalWriter, read_journal
from harness.record.store import JOURNAL, RUN_FILE
from harness.report.model import FindingRow, PromiseRow, read_report, to_json
from tests.command.chromium import Tab, chromium
from tests.command.conftest import Outcome, Seamark
from tests.unit.serve.stores import TORN, judged, report

SEAMARK = Path(sys.executable).with_name("seamark")
TOKEN = "0123456789abcdef0123"  # noqa: S105  Of no server but those of these tests.
HOSTILE = {
    "script": "<script>window.taken = 1</script><img src=x onerror='window.taken = 1'>",
    "colour": "\x1b[2J\x1b[32mPASS",
    "right-to-left": "\u202e\u2066SSAP",
    "long": "k" * 300_000,
}


@contextmanager
def served(store: Path) -> Iterator[str]:
    """The address, with its token, of a server of that store."""
    with server_of(store) as (address, server):
        yield address
        server.send_signal(signal.SIGTERM)


@contextmanager
def server_of(store: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address, with its token, of a server of that store, and its process, which is ended."""
    command = [str(SEAMARK), "serve", "--store", str(store), "--port", "0"]
    environment = os.environ | {"SEAMARK_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=store.parent, env=environment) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip(), server
        finally:
            server.kill()


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as found:
        yield found


def text_of(tab: Tab) -> str:
    found = tab.value("document.querySelector('main').innerText")
    assert isinstance(found, str)
    return found


def assert_fits(tab: Tab) -> None:
    is_wide = "it => it.getBoundingClientRect().right > innerWidth + 1"
    assert tab.value(f"Array.from(document.querySelectorAll('body *')).filter({is_wide}).map(it => it.tagName)") == []
    assert tab.value("document.documentElement.scrollWidth <= innerWidth")
    assert tab.value("typeof window.taken") == "undefined"
    assert tab.console == []


def test_a_store_is_listed_filtered_opened_and_compared_by_keyboard(tab: Tab, run_copy: Path) -> None:
    store = run_copy.parent.parent
    for number in range(20):
        judged(store, report(TORN, seed=number, cluster="ndb"), f"20261122T0000{number:02}Z-{number}", "ndb")
    tab.size(1280)
    with served(store) as address:
        tab.open(address)
        assert "token" not in tab.value("location.href")
        assert tab.value("document.cookie") == "", "no script can read the pass"
        assert text_of(tab).startswith("Runs 21")
        tab.tab_to("it.name === 'verdict'")
        for _ in range(2):  # all, ANOMALY, PASS
            tab.press("ArrowDown")
        tab.tab_to("it.type === 'submit'")
        tab.press("Enter")
        tab.wait("location.search.includes('verdict=valid') && document.readyState === 'complete'")
        assert text_of(tab).startswith("Runs 1 of 21")
        tab.tab_to("it.matches('.who a')")
        tab.press("Enter")
        tab.wait("location.pathname.startsWith('/runs/tutorial/') && document.readyState === 'complete'")
        assert "7 promises held" in text_of(tab)
        tab.tab_to("it.matches('.main')")
        tab.press("Enter")
        tab.wait("location.pathname.endsWith('/report.html') && document.readyState === 'complete'")
        assert tab.value("document.documentElement.classList.contains('js')"), "its own script runs"
        assert tab.console == []
        tab.open(f"{address.partition('?')[0]}runs?finding=f00d")
        assert text_of(tab).startswith("Runs 20 of 21")
        for _ in range(2):
            tab.tab_to("it.name === 'run' && !it.checked")
            tab.press("Space")
        tab.tab_to("it.id === 'compare'")
        tab.press("Enter")
        tab.wait("location.pathname === '/compare' && document.readyState === 'complete'")
        assert "Both runs show the same anomalies." in text_of(tab)
        assert_fits(tab)


def test_a_stored_page_has_an_origin_of_its_own_and_its_links_lead_on(tab: Tab, run_copy: Path) -> None:
    store = run_copy.parent.parent
    batch = store / "batches" / "20261123T000000Z-1"
    batch.mkdir(parents=True)
    (batch / "report.html").write_text(f'<title>b</title><a href="../../tutorial/{run_copy.name}/report.html">run</a>')
    with served(store) as address:
        tab.open(address)
        assert tab.value("origin") == address.partition("/?")[0]
        tab.open(f"{address.partition('?')[0]}store/batches/{batch.name}/report.html")
        assert tab.value("origin") == "null"
        tab.tab_to("it.matches('a')")
        tab.press("Enter")
        tab.wait("location.pathname.startsWith('/store/tutorial/') && document.readyState === 'complete'")
        assert tab.value("document.documentElement.classList.contains('js')"), "its own script runs"
        assert tab.value("origin") == "null"


def test_pages_fit_a_narrow_screen_and_hostile_text_is_only_shown(tab: Tab, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number, text in enumerate(HOSTILE.values()):
        finding = FindingRow(fingerprint=text, anomaly=text, checker=text, sentence=text, promise=text, ops=(1,))
        promise = PromiseRow(id=text, verdict="violated", witnesses=1, text=text, source=text)
        known = {
            "promises": (promise,),
            "reason": text,
            "bugs": (text,),
            "cluster": text,
            "workload": text,
            "drawn": {text: text},
        }
        judged(store, report(finding, **known), f"20261123T00000{number}Z-{number}")
    runs = [f"tutorial/20261123T00000{number}Z-{number}" for number in range(len(HOSTILE))]
    with served(store) as address:
        for width, is_dark in ((390, False), (1280, True)):
            tab.size(width, is_dark=is_dark)
            tab.open(address)
            places = [
                "runs",
                *(f"runs/{run}" for run in runs),
                f"compare?run={runs[0]}&run={runs[3]}",
                "trends",
                "sweeps",
            ]
            for place in places:
                tab.open(f"{address.partition('?')[0]}{place}")
                assert_fits(tab)
                assert len(text_of(tab)) < 40_000
        tab.open(f"{address.partition('?')[0]}runs/{runs[1]}")
        assert "\\x1b[2J\\x1b[32mPASS" in text_of(tab)


def test_a_run_is_shown_while_it_runs_until_its_report_is_there(tab: Tab, stored_run: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    run = store / "tutorial" / "20261123T235959Z-7"
    run.mkdir(parents=True)
    shutil.copy(stored_run / RUN_FILE, run / RUN_FILE)
    (run / RUN_FILE).touch()
    records = list(read_journal(stored_run / JOURNAL))
    finished = read_report(stored_run)
    assert finished is not None
    tab.size(390)
    with served(store) as address, JournalWriter(run / JOURNAL) as journal:
        tab.open(address)
        assert "RUNNING" in text_of(tab)
        tab.open(f"{address.partition('?')[0]}runs/tutorial/{run.name}")
        shown = "document.querySelector('[data-field={}]').textContent"
        for record in records[: len(records) // 2]:
            journal.append(record)
        tab.wait(f"Number({shown.format('ok')}) > 0")
        tab.wait(f"{shown.format('phase')} === 'load'")
        before = int(tab.value(shown.format("ok")))
        for record in records[len(records) // 2 :]:
            journal.append(record)
        tab.wait(f"Number({shown.format('ok')}) > {before}")
        assert_fits(tab)
        (run / "report.json").write_bytes(to_json(finished))
        tab.wait("document.querySelector('#live') === null && document.readyState === 'complete'")
        assert "PASS" in text_of(tab)
        assert_fits(tab)


def test_the_server_lets_nobody_in_without_the_token_and_ends_at_once(stored_run: Path) -> None:
    with served(stored_run.parent.parent) as address:
        assert address.endswith(f"/?token={TOKEN}")
        assert address.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}x")  # noqa: S310  It is our own.
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(address.partition("?")[0])  # noqa: S310


def test_nothing_is_left_of_a_server_that_was_killed(run_copy: Path) -> None:
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with server_of(run_copy.parent.parent) as (address, server):
        browser.open(address).close()
        browser.open(f"{address.partition('?')[0]}runs/tutorial/{run_copy.name}/history.jsonl").close()
        tasks = Path(f"/proc/{server.pid}/task").glob("*/children")
        (child,) = {int(each) for task in tasks for each in task.read_text().split()}
        descriptor = os.pidfd_open(child)
        server.kill()
        assert select.select([descriptor], [], [], 60)[0], "the process that decodes records is still there"
        os.close(descriptor)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--store", "nowhere"), "nowhere: there is no such folder"),
        (("--token", "short"), "at least 16 letters"),
        (("--host", "0x0"), "name one address of this machine"),
        (("--port", "70000"), "--port"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(
    seamark: Seamark, tmp_path: Path, arguments: tuple[str, str], message: str
) -> None:
    (tmp_path / "store").mkdir()
    outcome: Outcome = seamark("serve", *arguments)
    assert outcome.code == 64
    assert message in outcome.line
