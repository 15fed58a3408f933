"""The application: the answer for each address.

Everything is read from the store at that moment; nothing is written.
"""

import os
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from harness.campaign.calibration.document import CALIBRATION, CALIBRATION_FILE, read_calibration
from harness.campaign.calibration.shown import PAGE_FILE as PAGE_OF_CALIBRATION
from harness.core.command import seamark
from harness.core.errors import HistoryError, SeamarkError
from harness.record.ownership import temporary_folder
from harness.report.findings.headlines import headline
from harness.report.model import REPORT_FILE, Report, next_steps, read_report, repetition
from harness.report.page import STRIP, TITLES, script_source
from harness.report.screen import Commands, commands
from harness.report.trouble import in_one_line
from harness.serve.compared import comparison
from harness.serve.decoding.requests import WATCHERS_MAX, Cut, Format, Part, Span
from harness.serve.decoding.worker import CUTTER, FOLLOWER, OverLimit, Worker
from harness.serve.index import RUNNING, UNJUDGED, UNREADABLE, Index, Row, short
from harness.serve.listing import Choice, choice_of, first_sight, listed, paged
from harness.serve.live import events
from harness.serve.pages import rendered, script, style
from harness.serve.places import SERVED, NotThere, blocks_of, folder_in, open_file, require_small
from harness.serve.seats import SeatedResponse, Seats
from harness.serve.sweeps import Campaigns
from harness.serve.tally import Tallies
from harness.serve.trends import sightings, trends

Answer = Callable[[Request], Response]
NUMBER_MAX: Final = 12  # The most digits of a page number.
FINDINGS_MAX: Final = 100  # The most findings of a run on its page; the report has all.
SECOND: Final = 1_000_000_000
FOLLOW_S, CUT_S = 10.0, 60.0  # The time for a megabyte of a journal that is followed, and for a slice of a history.
FORMS: Final[dict[str, Format]] = {"jsonl": "jsonl", "edn": "edn"}


class Pages:
    """The answers to all requests about one store."""

    def __init__(self, store: Path) -> None:
        self.store = store.resolve()
        self.index = Index(self.store)
        self._campaigns, self._tallies = Campaigns(self.store), Tallies(self.store)
        self._watched = Seats(WATCHERS_MAX)
        self._turns = CapacityLimiter(1)  # One page is made at a time, as each may take tens of megabytes.
        # Only other processes decode records: here they would take the time of all pages, and keep their memory.
        self._follower, self._cutter = Worker(FOLLOWER, FOLLOW_S), Worker(CUTTER, CUT_S)

    def application(self) -> Starlette:
        """The application, without any access control: see Guard."""
        answers: dict[str, Answer] = {
            "/": lambda _: RedirectResponse("/runs", status_code=303),
            "/runs": self.runs,
            "/runs/{test}/{name}": self.run,
            "/runs/{test}/{name}/live": self.live,
            "/runs/{test}/{name}/history.{form}": self.history,
            "/compare": self.compare,
            "/sweeps": self.sweeps,
            "/trends": self.trends,
            "/calibration": self.calibration,
            "/store/{place:path}": self.stored,
            "/style.css": lambda _: Response(style(), media_type="text/css"),
            "/script.js": lambda _: Response(script(), media_type="text/javascript"),
            "/{rest:path}": self.nothing,
        }
        return Starlette(routes=[Route(path, self._safe(answer), methods=["GET"]) for path, answer in answers.items()])

    def close(self) -> None:
        """End the processes that decode records."""
        self._follower.close()
        self._cutter.close()

    def _safe(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """The answer, made in a thread, with errors turned into a page with one sentence."""
        turns = self._cutter.turns if answer == self.history else self._turns

        @wraps(answer)
        async def answered(request: Request) -> Response:
            try:
                return await run_sync(answer, request, limiter=turns)
            except NotThere as error:
                return self._trouble("There is no such page", str(error), 404)
            except OverLimit as error:
                return self._trouble("This takes too much", f"{error}; seamark export has no such limit", 503)
            except SeamarkError as error:
                return self._trouble("This cannot be shown", str(error), 500)
            except Exception as error:  # noqa: BLE001  One page fails, and the others are as they were.
                return self._trouble("This cannot be shown", in_one_line(error), 500)

        return answered

    def _trouble(self, title: str, why: str, status: int) -> Response:
        return self._page("serve_trouble.html", "", status=status, title=title, why=why)

    def _page(self, template: str, here: str, *, status: int = 200, **names: object) -> Response:
        html = rendered(template, self.store, here, **names)
        return HTMLResponse(html.encode("utf-8", "backslashreplace"), status)

    def nothing(self, request: Request) -> Response:
        """The answer for an address that does not exist."""
        raise NotThere(f"{request.url.path} leads nowhere")

    def runs(self, request: Request) -> Response:
        """The page with the list of runs."""
        page, choice = _number(request, "page"), choice_of(request.query_params)
        if choice == Choice() and page == 1 and not self.index.is_read:
            found = first_sight(self.index)
        else:
            found = listed(self.index.rows(), choice, page)
        return self._page("serve_runs.html", "/runs", found=found)

    def run(self, request: Request) -> Response:
        """The page of one run."""
        test, name = request.path_params["test"], request.path_params["name"]
        folder = folder_in(self.store, test, name)
        row = self.index.row(test, name)
        report, row = self._report(folder, row)
        findings = report.findings[:FINDINGS_MAX] if report is not None else ()
        title = _TITLES[row.state]
        if findings and findings[0].promise:
            title = headline(findings[0])
        return self._page(
            "serve_run.html",
            "/runs",
            row=row,
            report=report,
            title=title,
            findings=findings,
            signs=STRIP,
            next=_next(report, row, folder),
            commands=commands(report)[1:] if report is not None and repetition(report) else [],
            files=[each for each in SERVED if (folder / each).is_file()],
            has_history=(folder / "journal.log").is_file() or (folder / "history").is_dir(),
        )

    def _report(self, folder: Path, row: Row) -> tuple[Report | None, Row]:
        """The report for the page of a run, and the row; if it cannot be shown, the row has the reason."""
        if row.state in (RUNNING, UNREADABLE):
            return None, row
        try:
            require_small(folder / REPORT_FILE)
            return read_report(folder), row
        except HistoryError as error:
            return None, msgspec.structs.replace(row, reason=f"{row.reason}; {short(str(error))}")

    def live(self, request: Request) -> Response:
        """The state of a run, as server-sent events."""
        test, name = request.path_params["test"], request.path_params["name"]
        folder = folder_in(self.store, test, name)
        if not self._watched.take():
            return Response("too many runs are watched at once", 503)
        states = events(folder, lambda: self.index.row(test, name).state != RUNNING, self._follower)
        return SeatedResponse(self._watched, states, media_type="text/event-stream")

    def history(self, request: Request) -> Response:
        """A slice of a run's history, as a file to download."""
        folder = folder_in(self.store, request.path_params["test"], request.path_params["name"])
        form = FORMS.get(request.path_params["form"])
        if form is None:
            raise NotThere("a history is downloaded as jsonl or edn")
        wanted, what = self._wanted(folder, request)
        with temporary_folder("serve") as place:
            path = place / f"slice.{form}"
            self._cutter.ask(Cut(str(folder), str(path), form, wanted))
            file = path.open("rb")
        headers = _download(f"{folder.name}{what}.{form}") | {"content-length": str(os.fstat(file.fileno()).st_size)}
        return StreamingResponse(blocks_of(file), media_type="application/octet-stream", headers=headers)

    def _wanted(self, folder: Path, request: Request) -> tuple[Span | Part | None, str]:
        """The slice that the query names, and the name of the file to download."""
        fingerprint = request.query_params.get("finding")
        if fingerprint:
            require_small(folder / REPORT_FILE)
            report = read_report(folder)
            for each in report.findings if report is not None else ():
                if each.fingerprint == fingerprint:
                    return Part.of(each), "-finding"
            raise NotThere("this run has no finding of that fingerprint")
        seconds = [request.query_params.get(name, "").strip() for name in ("from", "to")]
        if not any(seconds):
            return None, ""
        try:
            from_s, to_s = (float(text or default) for text, default in zip(seconds, ("0", "1e9"), strict=True))
            span = Span(int(from_s * SECOND), int(to_s * SECOND))
        except (ValueError, OverflowError):
            raise NotThere("from and to are seconds of the run, as in from=7.5&to=8") from None
        return span, f"-from-{from_s:g}-to-{to_s:g}"

    def compare(self, request: Request) -> Response:
        """The page with two runs side by side."""
        places = list(dict.fromkeys(request.query_params.getlist("run")))
        if len(places) != 2:
            chosen = {0: "none is", 1: "one is"}.get(len(places), f"{len(places)} are")
            return self._page("serve_compare.html", "/runs", compared=None, chosen=chosen, pair=())
        pair = [self._judged(place) for place in places]
        return self._page(
            "serve_compare.html",
            "/runs",
            compared=comparison(*pair),
            pair=[(self.index.row(*place.split("/")), report) for place, report in zip(places, pair, strict=True)],
        )

    def _judged(self, place: str) -> Report:
        names = place.split("/")
        if len(names) != 2:
            raise NotThere(f"{place!r} is no run of this store")
        folder = folder_in(self.store, *names)
        require_small(folder / REPORT_FILE)
        report = read_report(folder)
        if report is None:
            raise NotThere(f"{place} has not been judged yet, and only judged runs can be compared")
        return report

    def sweeps(self, request: Request) -> Response:
        """The page with batches, sweeps and hunts."""
        return self._page("serve_sweeps.html", "/sweeps", found=paged(self._campaigns.all(), _number(request, "page")))

    def trends(self, request: Request) -> Response:
        """The page of the store over time."""
        tally = self._tallies.of(self.index.rows())
        nights = [each for each in self._campaigns.all() if each.kind == "sweep"]
        return self._page(
            "serve_trends.html",
            "/trends",
            trends=trends(tally),
            anomalies=paged(sightings(tally), _number(request, "anomalies")),
            nights=paged(nights, _number(request, "nights")),
            left_out=sorted(tally.left_out.items()),
            unread=tally.unread,
        )

    def calibration(self, request: Request) -> Response:
        """The page of the calibration in the store: how soon the checks find each planted bug."""
        folder = self.store / CALIBRATION
        is_there = (folder / CALIBRATION_FILE).is_file()
        require_small(folder / CALIBRATION_FILE)
        found = read_calibration(folder_in(self.store, CALIBRATION) / CALIBRATION_FILE) if is_there else None
        page = f"/store/{CALIBRATION}/{PAGE_OF_CALIBRATION}" if (folder / PAGE_OF_CALIBRATION).is_file() else None
        return self._page("serve_calibration.html", "/calibration", found=found, page=page)

    def stored(self, request: Request) -> Response:
        """A file of the store as it is. In a stored page only our own script runs, which is identified by its hash."""
        *names, name = request.path_params["place"].split("/")
        if not 1 <= len(names) <= 3:
            raise NotThere("files of a store are in the folders of its runs")
        file = open_file(folder_in(self.store, *names), name)
        policy = (
            f"sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src {script_source()}; "
            "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        )
        headers = {"content-security-policy": policy}
        if not name.endswith((".html", ".json")):
            headers |= _download(f"{names[-1]}-{name}")
        return StreamingResponse(blocks_of(file), media_type=SERVED[name], headers=headers)


def _next(report: Report | None, row: Row, run: Path) -> Commands:
    """The commands to run after reading the page of a run."""
    if report is None:
        return [("judge it", seamark("check", run))] if row.state == UNJUDGED else []
    return next_steps(report) or [("again", again) for again in (repetition(report),) if again is not None]


def _number(request: Request, name: str) -> int:
    """The number of a page in the query, 1 without one."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < NUMBER_MAX else 1


def _download(name: str) -> dict[str, str]:
    """The header that makes a browser save a response as a file with that name."""
    return {"content-disposition": f"attachment; filename*=utf-8''{quote(name, safe='', errors='surrogateescape')}"}


_TITLES: Final = TITLES | {
    "running": "This run is under way.",
    "not-judged": "This run has not been judged.",
    "unreadable": "This run cannot be read.",
}
