"""Texts of a sign-off that its page, its Markdown and the terminal share."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from harness.scenario.sut import release
from harness.signoff.document import Side, Signoff
from harness.signoff.exposure import RUNS
from harness.signoff.statistics import PER, number

STATES: Mapping[str, str] = MappingProxyType(
    {
        "new": "NEW",
        "worse": "WORSE",
        "ongoing": "ONGOING",
        "rare": "RARE",
        "resolved": "RESOLVED",
        "observed": "OBSERVED",
    }
)
MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "new": "in the candidate alone",
        "worse": "in both, and more often in the candidate than chance explains",
        "ongoing": "in both",
        "rare": "in the baseline alone, and so rare that the candidate may have missed it",
        "resolved": "in the baseline alone, and the candidate would have shown it",
        "observed": "no promise forbids it",
    }
)


def amount(value: float) -> str:
    """A measure of exposure as text."""
    return f"{int(value):,}" if value == int(value) else number(value)


def measured(value: float | None, unit: str) -> str:
    """A measure of behaviour with its unit; a dash if no run has it."""
    if value is None:
        return "–"
    return f"{number(value * 100)} %" if unit == "%" else f"{number(value)} {unit}".replace(" /s", "/s")


UNNAMED = "The releases are not named: declare name, version or commit of each with sut, as in --sut version=8.4.1."


def subject(signoff: Signoff) -> str:
    """The release that is decided on; without one the name of its sweep."""
    return release(signoff.candidate.sut) or f"the sweep {signoff.candidate.name}"


def releases(signoff: Signoff) -> str:
    """The two releases in a sentence, or that they are not named."""
    before, after = release(signoff.baseline.sut), release(signoff.candidate.sut)
    if not before and not after:
        return UNNAMED
    return f"Candidate: {after or 'not named'}. Baseline: {before or 'not named'}."


def versions(side: Side) -> str:
    """The versions of a sweep in one line."""
    return ", ".join(f"{name} {version}" for name, version in sorted(side.versions.items()))


def sentence_of_power(signoff: Signoff) -> Iterator[str]:
    """For each cluster a sentence: in how many of 1,000 runs a bug may occur that no run of the candidate showed."""
    for row in signoff.exposure:
        if row.what == RUNS and row.candidate > 3:  # Of fewer runs the bound says nothing.
            below = number(3 / row.candidate * PER)
            yield (
                f"{row.cluster}: an event not seen in {row.candidate:,.0f} runs is in fewer than {below} of 1,000 "
                "(3/n, at 95 %)."
            )
