"""Findings as a page shows them: a group for each event, with its root in full and its consequences as lines."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkers.verdict.titles import meaning, title
from harness.record.store import RunFile
from harness.report.evidence import Slice, first_moment
from harness.report.exclusions import Exclusion, exclusions
from harness.report.findings.headlines import headline
from harness.report.findings.messages import moment_messages
from harness.report.findings.story import Story
from harness.report.markdown import issue
from harness.report.model import FindingRow, PromiseRow, Report, called, closer, moment_window, smaller
from harness.report.pictures.cycle import Drawing, cycle_drawing
from harness.report.pictures.diagram import Diagram
from harness.report.pictures.members import member
from harness.report.pictures.plots import in_force
from harness.report.pictures.scale import duration, moment
from harness.report.pictures.timeline import Timeline, timeline
from harness.report.screen import Commands
from harness.report.track_record import TrackRecord, track_records

SENTENCE_MAX: Final = 800  # The most characters of a cycle's sentence: a longer one appears in its steps only.
FAULTS_NAMED: Final = 4  # The most faults during a finding; of more, only the kinds are named.
AFTERMATH_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A finding as shown on the page. `moment_ns` is when it became visible."""

    number: int
    finding: FindingRow
    name: str
    title: str  # Its sentence, or a short form for a long cycle.
    sentence: str  # Its sentence; for a very long one, the headline, as the proof has its parts.
    steps: tuple[tuple[str, str, str, str], ...]  # The steps of its cycle: from, to, the sentence, the relation.
    promise: PromiseRow | None
    breaks: str
    when: str
    drawing: Drawing | None
    found: Slice | None
    picture: Timeline | None
    faults: tuple[str, ...]  # Those in force during the finding.
    excluded: tuple[Exclusion, ...]
    track: TrackRecord | None
    closer: str | None
    smaller: str | None
    messages: Diagram | None
    issue: str

    @property
    def anchor(self) -> str:
        """The anchor of the finding on the page."""
        return f"f{self.number}"


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one event: the root, and those that name the same records."""

    root: Shown
    others: tuple[Shown, ...]


def shown_groups(
    report: Report, grouped: Sequence[Sequence[FindingRow]], story: Story, run_file: RunFile | None, repeating: Commands
) -> list[Group]:
    """The groups, with everything that the page shows of each finding."""
    tracks = track_records(report)
    numbers = {id(finding): number for number, finding in enumerate(report.findings, 1)}
    result = []
    for group in grouped:
        every = [
            _shown(report, story, run_file, repeating, number=number, track=tracks[number - 1])
            for number in (numbers[id(finding)] for finding in group)
        ]
        result.append(Group(every[0], tuple(every[1:])))
    return result


def _shown(
    report: Report,
    story: Story,
    run_file: RunFile | None,
    repeating: Commands,
    *,
    number: int,
    track: TrackRecord | None,
) -> Shown:
    finding, found, forms = report.findings[number - 1], story.slices.get(number), story.forms
    operations = {invoke.index: (invoke, complete) for invoke, complete in found.operations} if found else {}
    excluded = _excluded(report, finding, story, found, run_file) if found else ()
    seen_ns = first_moment(story.series, finding) if story.series is not None else None
    is_order = story.series is not None and story.series.is_order
    return Shown(
        number=number,
        finding=finding,
        name=title(finding.anomaly, report.declared),
        title=headline(finding, forms),
        sentence=finding.sentence if len(finding.sentence) <= SENTENCE_MAX else headline(finding, forms),
        steps=tuple(
            (member(step.source, forms), member(step.target, forms), step.sentence, step.relation)
            for step in finding.cycle
        ),
        promise=next((row for row in report.promises if row.id == finding.promise), None),
        breaks=called(report, finding.promise),
        when="" if seen_ns is None else moment(seen_ns, is_order=is_order),
        drawing=cycle_drawing(finding.cycle, operations, forms),
        found=found,
        picture=_picture(found, story) if found and number in story.drawn else None,
        faults=_faults(found, story) if found else (),
        excluded=excluded,
        track=track,
        closer=None if seen_ns is None or is_order else closer(report, moment_window(seen_ns)),
        smaller=smaller(report, finding),
        messages=_messages(report, found, run_file, seen_ns) if number in story.drawn else None,
        issue=issue(report, finding, found.rows if found else (), excluded, repeating=repeating, forms=forms),
    )


def glossary(report: Report) -> list[tuple[str, str]]:
    """The name and the meaning of each anomaly that occurs, in the order of the findings."""
    found = dict.fromkeys(finding.anomaly for finding in report.findings)
    meant = ((title(name, report.declared), meaning(name, report.declared)) for name in found)
    return [(name, text) for name, text in meant if text]


def _excluded(
    report: Report, finding: FindingRow, story: Story, found: Slice, run_file: RunFile | None
) -> tuple[Exclusion, ...]:
    if story.series is None:
        return ()
    return exclusions(report, finding, found, series=story.series, writes=story.writes, run_file=run_file)


def _picture(found: Slice, story: Story) -> Timeline | None:
    if story.series is None or story.overview is None:
        return None
    return timeline(found, story.series, story.overview.kinds)


def _messages(report: Report, found: Slice | None, run_file: RunFile | None, seen_ns: int | None) -> Diagram | None:
    if report.run is None or found is None or run_file is None or seen_ns is None:
        return None
    return moment_messages(Path(report.run), found, run_file.subscribers, moment_window(seen_ns))


def _faults(found: Slice, story: Story) -> tuple[str, ...]:
    """The faults in force during the finding, and those that had just ended, as their aftermath counts."""
    windows = in_force(story.series.windows if story.series else (), found.first_ns - AFTERMATH_NS, found.last_ns)
    if len(windows) > FAULTS_NAMED:
        counts = Counter(window.kind for window in windows)
        return tuple(f"{kind} ({'once' if count == 1 else f'{count} times'})" for kind, count in counts.items())
    texts = list[str]()
    for window in windows:
        ended = f", ended {duration(found.first_ns - window.end_ns)} before" if window.end_ns < found.first_ns else ""
        texts.append(f"{window.kind} of {_struck(window.targets)}{ended}")
    return tuple(dict.fromkeys(texts))


def _struck(targets: str) -> str:
    """The targets of a fault, with the links of one node together: "links from d1 to d2, d3" or "between d1 and d2"."""
    links = [tuple(each.split(">")) for each in targets.split(", ")]
    if any(len(link) != 2 for link in links):
        return targets
    one_way = [link for link in links if link[::-1] not in links]
    two_way = [link for link in links if link[::-1] in links]
    texts = list[str]()
    for source in dict.fromkeys(source for source, _ in one_way):
        texts.append(f"from {source} to {', '.join(end for start, end in one_way if start == source)}")
    while two_way:
        node, _ = Counter(source for source, _ in two_way).most_common(1)[0]
        texts.append(f"between {node} and {', '.join(end for start, end in two_way if start == node)}")
        two_way = [link for link in two_way if node not in link]
    return f"links {' and '.join(texts)}"
