"""`seamark signoff`: decides on a release."""

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.cli.output import print_json
from harness.core.errors import ScenarioError
from harness.record.store import STORE, write_atomically
from harness.report.screen import plain, say, suggest
from harness.run.single import encoded
from harness.signoff.decision import Inputs, sign_off
from harness.signoff.document import SIGNOFF_FILE, Decision, FindingRow, Signoff, to_json
from harness.signoff.markdown import signoff_markdown
from harness.signoff.named import sweep_named
from harness.signoff.page import signoff_page
from harness.signoff.texts import STATES, releases
from harness.signoff.verification import Request, lines, verified

STYLES = {Decision.GO: "bold green", Decision.NO_GO: "bold red", Decision.INSUFFICIENT: "bold yellow"}
PAGE_FILE, MARKDOWN_FILE = "signoff.html", "signoff.md"
NAMED = "its folder, its name, or its release"
SHOWN = 8  # The most further reasons, and findings, on the screen.


def signoff(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    baseline: Annotated[Path | None, typer.Argument(help=f"The sweep of the release before: {NAMED}.")] = None,
    candidate: Annotated[Path | None, typer.Argument(help="That of the release to decide on, or latest.")] = None,
    waivers: Annotated[
        Path | None, typer.Option(help="A TOML file: fingerprint, owner, reason and expires of each [[waiver]].")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="calibration.json, for the bugs that the sweeps would have found.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for signoff.html, signoff.md and signoff.json.")] = Path(
        "signoff"
    ),
    verify: Annotated[
        Path | None, typer.Option(metavar="DOCUMENT", help="Does this signoff.json follow from what it rests on?")
    ] = None,
    replay: Annotated[int, typer.Option(min=0, help="With --verify: carry out so many drawn runs again.")] = 0,
    cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py:NAME", help="With --verify: code in a file, its checks included."),
    ] = None,
    signed_by: Annotated[str | None, typer.Option(metavar="NAME", help="The person who signs.")] = None,
    ticket: Annotated[str | None, typer.Option(help="The ticket of the release.")] = None,
    store: Annotated[Path, typer.Option(help="The folder in which sweeps that are named are kept.")] = STORE,
    as_json: Annotated[bool, typer.Option("--json", help="Print signoff.json and nothing else.")] = False,
) -> int:
    """Decide on a release by two sweeps, and write the document that says why.

    Exits with 0 for GO, 1 for NO-GO and 3 for INSUFFICIENT EVIDENCE; with --verify 0 if nothing differs, 1 if something
    does, and 3 if no run could be carried out again.
    """
    if (baseline is None) != (candidate is None) or (verify is None and baseline is None):
        raise ScenarioError("which sweeps? Name two folders, BASELINE and CANDIDATE, or --verify DOCUMENT")
    if verify is not None:
        request = Request(
            document=verify, baseline=baseline, candidate=candidate, replay=replay, allowed=tuple(cluster or ())
        )
        return _verify(request, as_json=as_json)
    if replay or cluster:
        raise ScenarioError("--replay and --cluster are for --verify DOCUMENT")
    assert baseline is not None
    assert candidate is not None
    inputs = Inputs(
        baseline=sweep_named(baseline, store),
        candidate=sweep_named(candidate, store),
        waivers=waivers,
        calibration=calibration,
        signed_by=signed_by,
        ticket=ticket,
    )
    return _decide(inputs, out, as_json=as_json)


def _decide(inputs: Inputs, out: Path, *, as_json: bool) -> int:
    """Decide, write the document, and show it; returns the exit code."""
    decided = sign_off(inputs, datetime.now(UTC).date())
    document = to_json(decided)
    digest = sha256(document).hexdigest()
    _write(
        out,
        {
            SIGNOFF_FILE: document,
            MARKDOWN_FILE: encoded(signoff_markdown(decided, digest)),
            PAGE_FILE: encoded(signoff_page(decided, digest)),
        },
    )
    if as_json:
        print_json(decided)
    else:
        _show(decided, out)
    return decided.exit_code


def _verify(request: Request, *, as_json: bool) -> int:
    """Show whether a sign-off holds; returns the exit code."""
    found = verified(request)
    if as_json:
        print_json(found)
        return found.exit_code
    console = Console(highlight=False)
    decision = Decision(found.decision)
    word, style = ("DIFFERS", "bold red") if found.differences else ("FOLLOWS", "bold green")
    what = f"  {decision.word} of {found.signed_utc}"
    console.print(plain(word, style) + plain(f"{what} (exit {found.exit_code})"), soft_wrap=True)
    for line in lines(found):
        console.print(plain(line), soft_wrap=True)
    return found.exit_code


def _write(out: Path, files: dict[str, bytes]) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(out / name, content)
    except OSError as error:
        raise ScenarioError(f"{out}: cannot be written ({error.strerror}); choose another folder with --out") from None


def _show(decided: Signoff, out: Path) -> None:
    """Print the decision with its reasons, then the findings of both sweeps, and where the document is."""
    console = Console(highlight=False)
    decision = Decision(decided.decision)
    first, *others = decided.reasons
    say(
        console, plain(decision.word, STYLES[decision]) + plain(f"  {first} (exit {decision.exit_code})"), is_whole=True
    )
    say(console, releases(decided), "  ")
    lines = _some([f"  {reason}" for reason in others], out)
    lines += _some(list(map(_finding, decided.findings)), out)
    for line in lines:
        say(console, line)
    suggest(console, "open", str(out / PAGE_FILE))


def _finding(row: FindingRow) -> str:
    waived = f"  waived by {row.waiver}" if row.waiver else ""
    before, now = (f"{each.seen:,} of {each.runs:,}" for each in (row.baseline, row.candidate))
    rates = f"{before} runs before, {now} now ({row.candidate.interval})"
    return f"  {STATES[row.state]:<9} {row.anomaly}: {rates}  {row.fingerprint}{waived}"


def _some(lines: list[str], out: Path) -> list[str]:
    left = len(lines) - SHOWN
    return [*lines[:SHOWN], f"  and {left} more in {out / PAGE_FILE}"] if left > 0 else lines
