"""A sign-off as one HTML file, in the style of reports, that prints on A4."""

from checkers.verdict.titles import title
from harness.core.verdict import Verdict
from harness.report.page import STRIP, rendered
from harness.report.screen import Commands
from harness.scenario.sut import release
from harness.signoff.document import Decision, Signoff
from harness.signoff.statistics import percent
from harness.signoff.texts import MEANINGS, STATES, amount, measured, releases, sentence_of_power, subject, versions

NEXT_MAX = 3  # The most commands in the first screen.
COLOURS = {Decision.GO: "valid", Decision.NO_GO: "invalid", Decision.INSUFFICIENT: "vacuous"}
STATE_COLOURS = {"new": "violated", "worse": "violated", "ongoing": "not-exercised", "rare": "not-exercised"}
TITLES = {
    Decision.GO: "This release may go out.",
    Decision.NO_GO: "This release must not go out.",
    Decision.INSUFFICIENT: "The evidence does not suffice for a decision.",
}


def signoff_page(signoff: Signoff, sha256: str) -> str:
    """The page. `sha256` is the hash of signoff.json."""
    decision = Decision(signoff.decision)
    return rendered(
        "signoff.html",
        (),
        {"hover": {}},
        signoff=signoff,
        sha256=sha256,
        word=decision.word,
        subject=subject(signoff),
        releases=releases(signoff),
        release=release,
        next=_next(signoff),
        colour=COLOURS[decision],
        title=TITLES[decision],
        sides=(("baseline", signoff.baseline), ("candidate", signoff.candidate)),
        verdicts={each.value: each.word for each in Verdict},
        states=STATES,
        meanings={state: MEANINGS[state] for state in STATES if any(row.state == state for row in signoff.findings)},
        state_colours=STATE_COLOURS,
        clusters=list(dict.fromkeys(row.cluster for row in signoff.exposure)),
        cells=list(dict.fromkeys(row.cell for row in signoff.behaviour)),
        sources=list(dict.fromkeys(row.source for row in signoff.promises)),
        bounds=list(sentence_of_power(signoff)),
        signs=STRIP,
        name_of=title,
        amount=amount,
        measured=measured,
        percent=percent,
        versions=versions,
    )


def _next(signoff: Signoff) -> Commands:
    """The commands that make runs with blocking findings again, each once, with the finding that is named first."""
    named: dict[str, str] = {}
    for each in signoff.findings:
        if each.is_blocking and each.command:
            named.setdefault(each.command, title(each.anomaly))
    return [(name, command) for command, name in named.items()][:NEXT_MAX]
