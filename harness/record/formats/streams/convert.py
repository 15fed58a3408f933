"""Converts a file with a foreign stream to a history of its events, with the promises for such a stream.

One pass reads the file into columns; then all positions, sessions and units get their numbers. A session that does
not report its start is assumed to start just before its lowest position: an event first delivered after a
higher watermark is late, wherever the session really started.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from checkers.lineage import order, space, units
from checkers.lineage.check import ANOMALIES as LINEAGE_ANOMALIES
from checkers.streams.catalogue import RULES, names_that_need
from checkers.streams.rule import Need
from checkers.words.checks import LINEAGE, STREAMS
from harness.core.errors import HistoryError
from harness.core.promises import Naming, Promise
from harness.record.formats.load import Loaded, require_file
from harness.record.formats.promise_file import Promised
from harness.record.formats.streams.line import StreamFormat
from harness.record.formats.streams.lines import first_lines
from harness.record.formats.streams.mappings.known import hint
from harness.record.formats.streams.mappings.sites import load_sites
from harness.record.formats.streams.survey import Survey
from harness.record.store import HISTORY

NEED_OPENS: Final = names_that_need(Need.OPENS)
NEED_IMAGES: Final = names_that_need(Need.IMAGES)
NEED_SOURCE: Final = names_that_need(Need.SOURCE)


def load_stream(
    path: Path, into: Path, form: StreamFormat, more: Sequence[Path] = (), *, is_hashed: bool = True
) -> tuple[Loaded, Promised]:
    """The stream in that file as a history inside `into`, and its promises. It goes on in the files `more`.

    Without `is_hashed` the history may lack its hash, which saves a tenth of the time.

    Raises HistoryError with the file, the line and the problem.
    """
    for each in (path, *more):
        require_file(each)
    if form.sites is not None:
        return load_sites((path, *more), into, form, form.sites)
    try:
        survey = Survey((path, *more), form)
    except HistoryError as error:
        advice = hint(first_lines(path), form.name)
        raise HistoryError(f"{error}; {advice}" if advice else str(error)) from None
    if survey.lacks_keys:
        raise HistoryError(
            f"{path}: its rows have no key, and nothing else that could be judged: write each line with the message's "
            "key and value, or name the key's columns with --key"
        )
    if form.contract.positions == "dense" and survey.positions.are_ranks:
        raise HistoryError(f'{path}: its positions are no integers, so [stream] positions = "dense" means nothing')
    try:
        into.mkdir(parents=True, exist_ok=True)
        survey.write(into / HISTORY, is_hashed=is_hashed)
    except OSError as error:
        raise HistoryError(f"{into}: cannot be written ({error.strerror}); make room, or use another folder") from None
    loaded = Loaded(history=into / HISTORY, format=form.name, is_foreign=True, notes=tuple(_notes(form, survey)))
    naming = Naming(position=survey.positions.noun)
    return loaded, Promised(promises=tuple(_promises(form, survey)), stream=survey.contract, naming=naming)


def _promises(form: StreamFormat, survey: Survey) -> Iterator[Promise]:
    """One promise for each rule; rules that need data the file lacks are bound to no check."""
    for rule in sorted(RULES.values(), key=lambda rule: rule.id):
        text, check = rule.anomaly.meaning, "source"
        if Need.SOURCE in rule.needs:
            text = f"{text} Cannot be judged without the operations of the source."
        elif Need.OPENS in rule.needs and not form.has_opens:
            text = f"{text} Cannot be judged where sessions do not declare their start."
        elif Need.IMAGES in rule.needs and not survey.images:
            text = f"{text} Cannot be judged where rows have no keys or no before-images."
        elif Need.ALL in rule.needs and form.contract.consumers == "group":
            text = f"{text} Cannot be judged where subscribers share the events."
        else:
            check = STREAMS
        yield Promise(id=rule.id, text=text, source=form.name, forbids=(rule.name,), is_purpose=False, check=check)
    of_logs = [*space.ANOMALIES, *order.ANOMALIES] if form.has_lineage else []
    of_logs += {"mixed": [], "together": [units.SPLIT], "one-order": [units.SPLIT, units.ORDER]}[
        form.contract.unit_layout
    ]
    for name in of_logs:
        yield Promise(
            id=name,
            text=LINEAGE_ANOMALIES[name].meaning,
            source=form.name,
            forbids=(name,),
            is_purpose=False,
            check=LINEAGE,
        )


def _notes(form: StreamFormat, survey: Survey) -> Iterator[str]:
    yield (
        f"not exercised without the operations of the source: {', '.join(NEED_SOURCE)}; write both into one file of "
        "JSON Lines, and check it with --promises"
    )
    if not form.has_opens:
        yield (
            f"not exercised, as sessions do not declare where they begin: {', '.join(NEED_OPENS)}; a mapping file can "
            "name a kind of line that is open"
        )
    if not survey.images:
        lacking = "before-images"
        how = "have the source log whole rows" if form.is_by_source else "name their field in the mapping file: before"
        if 0 < survey.rows == survey.keyless:
            lacking, how = "keys", "name the key's columns with --key"
        yield f"not exercised, as rows have no {lacking}: {', '.join(NEED_IMAGES)}; {how}"
    if survey.has_tables_for_partitions:
        yield (
            f"name the key's columns with --key: {survey.keyless} of {survey.rows} rows came without a key, and no "
            "line names its partition, so each table is taken as one partition, in the order of its lines; or write "
            "each line with the message's key and partition"
        )
