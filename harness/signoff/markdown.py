"""A sign-off as Markdown, with the same content as its page."""

from collections.abc import Iterator

from checkers.verdict.titles import title
from harness.report.markdown import code, escaped, table
from harness.signoff.document import Decision, Signoff
from harness.signoff.statistics import percent
from harness.signoff.texts import STATES, amount, measured, releases, sentence_of_power, subject, versions


def signoff_markdown(signoff: Signoff, sha256: str) -> str:
    """The document. `sha256` is the hash of signoff.json."""
    word = Decision(signoff.decision).word
    lines = [
        f"# {word}: {escaped(subject(signoff))}",
        "",
        escaped(releases(signoff)),
        "",
        *(f"- {escaped(each)}" for each in signoff.reasons),
        "",
    ]
    lines += [f"Rule: {signoff.rule}", "", _signature(signoff), ""]
    for heading, found in (
        ("The two sweeps", _sides(signoff)),
        ("Exposure", _exposure(signoff)),
        ("Findings", _findings(signoff)),
        ("Power", _power(signoff)),
        ("Behaviour under faults", _behaviour(signoff)),
        ("Promises", _promises(signoff)),
        ("Waivers", _waivers(signoff)),
        ("Evidence", _digests(signoff, sha256)),
    ):
        lines += [f"## {heading}", "", *found, ""]
    return "\n".join(lines)


def _signature(signoff: Signoff) -> str:
    """The line that a person signs."""
    by = escaped(signoff.signed_by) if signoff.signed_by else "________________"
    ticket = f", ticket {escaped(signoff.ticket)}" if signoff.ticket else ""
    return f"Signed off on {signoff.signed_utc} (UTC) by {by}{ticket}; exit {signoff.exit_code}."


def _sides(signoff: Signoff) -> list[str]:
    pair = (signoff.baseline, signoff.candidate)
    rows = [
        ("sweep", *(escaped(f"{each.name}, {each.began_utc}") for each in pair)),
        ("verdict", *(escaped(f"{each.verdict}: {each.reason}") for each in pair)),
        ("versions", *(escaped(versions(each)) for each in pair)),
        ("planted bugs", *(escaped(", ".join(each.bugs) or "none") for each in pair)),
    ]
    return table(("", "baseline", "candidate"), rows)


def _exposure(signoff: Signoff) -> list[str]:
    rows = [
        (
            escaped(each.cluster),
            escaped(each.what),
            amount(each.baseline),
            amount(each.candidate),
            escaped(each.why or "enough"),
        )
        for each in signoff.exposure
    ]
    return table(("cluster", "", "baseline", "candidate", ""), rows)


def _findings(signoff: Signoff) -> list[str]:
    if not signoff.findings:
        return ["None in either sweep.", "", *_bounds(signoff)]
    rows = [
        (
            STATES[each.state] + (f", waived by {escaped(each.waiver)}" if each.waiver else ""),
            f"**{escaped(title(each.anomaly))}**: {escaped(each.sentence)}",
            escaped(each.promise or "none"),
            each.baseline.text,
            each.candidate.text,
            escaped(each.note or ""),
            code(each.fingerprint),
        )
        for each in signoff.findings
    ]
    heads = ("", "finding", "breaks", "baseline", "candidate", "", "fingerprint")
    return [*table(heads, rows), "", *_bounds(signoff)]


def _bounds(signoff: Signoff) -> list[str]:
    return [f"{escaped(each)}" for each in sentence_of_power(signoff)]


def _power(signoff: Signoff) -> list[str]:
    if not signoff.power:
        return ["No calibration of these clusters was given."]
    rows = [
        (
            escaped(each.cluster),
            escaped(each.bug),
            escaped(each.promise or "none"),
            f"{each.hits:,} of {each.drawn:,}",
            "–" if each.chance is None else percent(each.chance),
            "–" if each.least is None else percent(each.least),
        )
        for each in signoff.power
    ]
    heads = ("cluster", "planted bug", "breaks", "calibration", "seen here with", "at least")
    return table(heads, rows)


def _behaviour(signoff: Signoff) -> list[str]:
    rows = [
        (
            escaped(each.cell),
            each.what,
            measured(each.baseline, each.unit),
            measured(each.candidate, each.unit),
            "worse" if each.is_worse else "",
        )
        for each in signoff.behaviour
    ]
    return table(("cell", "", "baseline", "candidate", ""), rows)


def _promises(signoff: Signoff) -> list[str]:
    rows = [
        (
            escaped(each.cluster),
            escaped(each.id),
            escaped(each.text),
            each.baseline or "not promised",
            each.candidate or "not promised",
            f"{each.witnesses:,}",
            escaped(each.source),
        )
        for each in signoff.promises
    ]
    return table(("cluster", "promise", "", "baseline", "candidate", "witnesses", "source"), rows)


def _waivers(signoff: Signoff) -> list[str]:
    if not signoff.waivers:
        return ["None."]
    rows = [
        (code(each.fingerprint), escaped(each.owner), escaped(each.reason), each.expires, each.state)
        for each in signoff.waivers
    ]
    return table(("fingerprint", "owner", "reason", "expires", ""), rows)


def _digests(signoff: Signoff, sha256: str) -> Iterator[str]:
    rows = [(escaped(each.what), escaped(each.path), code(each.sha256)) for each in signoff.digests]
    sides = (("baseline", signoff.baseline), ("candidate", signoff.candidate))
    rows += [(f"{name}, histories", escaped(each.path), code(each.history_sha256)) for name, each in sides]
    yield from table(("", "file", "sha256"), rows)
    yield ""
    yield f"signoff.json, which has all of this: {code(sha256)}"
