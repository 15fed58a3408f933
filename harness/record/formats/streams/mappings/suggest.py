"""A mapping file for a stream that is not known, from its first lines: the fields found, and what each could be."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from harness.core.record import Json
from harness.record.formats.streams.line import Place
from harness.record.formats.streams.notations import place_of
from harness.record.formats.streams.positions import position_of

_KINDS_MOST: Final = 12
_DEEPEST: Final = 3
_MEANINGS: Final = (
    ("delete", re.compile(r"(?i)d|del.*|remove.*|-D|expire.*")),
    ("backfill", re.compile(r"(?i)load|snapshot")),
    (
        "row",
        re.compile(
            r"(?i)c|u|i|r|ins.*|upd.*|modif.*|create.*|put|set|upsert|replace|row|\+I|\+U|write|change|event|data"
        ),
    ),
    ("watermark", re.compile(r"(?i).*(watermark|resolved|progress|checkpoint).*")),
    ("open", re.compile(r"(?i)open|start(ed)?|connect(ed)?")),
)
_NAMES: Final = {
    "position": re.compile(r"(.*_)?(lsn|pos|position|offset|seq|sequence|seqno|(sequence|commit)_number|replay_id|scn|"
                           r"commit_?(ts|time|timestamp)|gtid|version|revision|rev|timestamp|ts|updated|log_?id)"),
    "key": re.compile(r"(.*_)?(keys?|ids?|pk|uuid)"),
    "kind": re.compile(r"op|kind|action|operation|event|(event_?|change_?)?type|event_?name"),
    "value": re.compile(r"after|data|value|row|new|new_?(row|image)|doc|document|fields|payload|record"),
    "before": re.compile(r"before|old|old_?(row|image)|prev|previous"),
    "partition": re.compile(r"(.*_)?(partition|shard|shard_?id|slot)"),
    "unit": re.compile(r"(xid|tx_?id|transaction_?(id|key)|tx|txn|transaction)"),
    "session": re.compile(r"(session|session_?id|connection|connection_?id)"),
    "watermark": re.compile(r"(watermark|resolved(_?ts)?|progress|checkpoint)"),
}  # fmt: skip
_POSITIONS: Final = (
    (re.compile(r"(?i).*(lsn|pos|gtid|scn).*"), "lsn"),
    (re.compile(r"(?i).*(offset|seq).*"), "offset"),
    (re.compile(r"(?i).*(rev|version).*"), "revision"),
    (re.compile(r"(?i).*"), "commit-timestamp"),
)


class Found(NamedTuple):
    """A field in the first lines: its name, its values by line, and how many lines there are."""

    name: str
    values: list[Json]
    lines: int

    @property
    def last(self) -> str:
        """The last part of its name, as words in small letters: `sequence_number` for SequenceNumber."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|-", "_", self.name.rsplit(".", 1)[-1]).lower()

    @property
    def texts(self) -> list[str]:
        """Its different values, as [kinds] names them, in the order of the lines."""
        of = (each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in self.values)
        return list(dict.fromkeys(of))


def suggestion(lines: Sequence[Json]) -> str | None:
    """The text of a mapping file for a stream with those first lines; None if they are no objects."""
    fields = _fields([line for line in lines if isinstance(line, dict)])
    if not fields:
        return None
    chosen = _chosen(fields)
    return (
        "\n".join([*_head(fields), *_of_fields(fields, chosen), "", *_kinds(chosen.get("kind")), *_contract(chosen)])
        + "\n"
    )


def _fields(lines: Sequence[dict[str, Json]]) -> list[Found]:
    values: dict[str, list[Json]] = {}

    def take(name: str, value: Json, depth: int) -> None:
        if value is not None:
            values.setdefault(name, []).append(value)
        if isinstance(value, dict) and depth < _DEEPEST:
            for inner, each in value.items():
                take(f"{name}.{inner}", each, depth + 1)

    for line in lines:
        for name, value in line.items():
            take(name, value, 0)
    return [Found(name, of, len(lines)) for name, of in values.items()]


def _chosen(fields: Sequence[Found]) -> dict[str, Found]:
    """The field that each item most likely is in."""
    tests: tuple[tuple[str, Callable[[Found], float]], ...] = (
        ("position", _rises),
        ("kind", lambda each: 0.5 * (1 <= len(each.texts) <= _KINDS_MOST and _is_scalar(each))),
        ("value", lambda each: 0.5 * isinstance(each.values[0], dict)),
        ("before", _by_name),
        ("partition", _by_name),
        ("unit", _by_name),
        ("session", _by_name),
        ("watermark", lambda each: 0.1 * (_rises(each) > 0 and len(each.values) < each.lines)),
        ("key", lambda each: 0.2 * _is_scalar(each) + 0.4 * (len(each.texts) < len(each.values))),
    )
    chosen: dict[str, Found] = {}
    for item, fitness in tests:
        left = [each for each in fields if each not in chosen.values()]
        scores = [(_score(item, each, fitness), -each.name.count("."), each) for each in left]
        best = max(scores, key=lambda each: each[:2], default=None)
        if best is not None and best[0] >= 1:
            chosen[item] = best[2]
    return chosen


def _score(item: str, each: Found, fitness: Callable[[Found], float]) -> float:
    """1 if the name fits, and more as its values fit: a name alone is enough, and values alone are not."""
    fits = fitness(each)
    is_named = _NAMES[item].fullmatch(each.last) is not None
    if item in ("position", "kind", "watermark") and fits == 0:
        return 0
    if item == "position" and not is_named:  # A column of a row can rise in the same way.
        return 0
    if item in ("partition", "session", "unit") and not _is_scalar(each):
        return 0
    return is_named + fits + 0.3 * len(each.values) / each.lines


def _by_name(_: Found) -> float:
    return 0.0


def _is_scalar(each: Found) -> bool:
    return not any(isinstance(value, list | dict) for value in each.values)


def _rises(each: Found) -> float:
    """Up to 1: the share of steps that do not fall, if all values are positions, and not all are one."""
    try:
        at = [position_of(place_of(value) or value) for value in each.values]
    except ValueError:
        return 0
    if len({one.kind for one in at}) != 1 or len(set(at)) == 1 or isinstance(each.values[0], Place):
        return 0
    steps = [one.parts <= other.parts for one, other in pairwise(at)]
    share = sum(steps) / len(steps)
    return share if share > 0.5 else 0


def _head(fields: Sequence[Found]) -> Iterator[str]:
    yield "# Suggested from the first lines of the file: read each line, and mend what is not so."
    yield "# The fields found:"
    for each in fields:
        shown = ", ".join(text[:24] for text in each.texts[:3])
        shown += ", ..." if len(each.texts) > 3 else ""
        yield f"#   {each.name:24} in {len(each.values)} of {each.lines} lines: {shown}"


def _of_fields(fields: Sequence[Found], chosen: dict[str, Found]) -> Iterator[str]:
    yield ""
    if "session" not in chosen:
        yield "one_session = true          # No field looks like a connection: name one as session, if there is one."
    yield ""
    yield "[fields]"
    why = {
        "key": "which row it is; several columns: [\"tenant\", \"id\"]",
        "position": "the order of the source",
        "value": "the row; null means that it was deleted",
        "before": "the row that it replaced, or some of its columns",
        "kind": "the kind of a line, by [kinds]",
        "partition": "rows are in order inside it",
        "unit": "the transaction",
        "session": "the connection",
        "watermark": "the stream is whole up to it",
    }  # fmt: skip
    for item, reason in why.items():
        found = chosen.get(item)
        if found is not None:
            others = [each.name for each in fields if each != found and _NAMES[item].fullmatch(each.last)][:3]
            also = f"; or {', '.join(others)}" if others else ""
            yield _line(f'{item} = "{found.name}"', f"{reason}: in {len(found.values)} of {found.lines} lines{also}.")
        else:
            if item == "position":
                yield _line(
                    'position = { place = "line" }', "no field looks like the source's order: name it if there is one."
                )
                continue
            is_needed = item == "key"
            text = f'{"" if is_needed else "# "}{item} = "?"'
            yield _line(text, f"{reason}: no field looks like it{'; it is needed' if is_needed else ''}.")
    yield ""


def _line(text: str, remark: str) -> str:
    return f"{text:27} # {remark[0].upper()}{remark[1:]}"


def _kinds(kind: Found | None) -> Iterator[str]:
    if kind is None:
        return
    yield "[kinds]                     # To row, delete, watermark, open, backfill, gap, commit, close, end, or skip."
    for text in kind.texts:
        meaning = next((word for word, pattern in _MEANINGS if pattern.fullmatch(text)), "skip")
        line = f'"{text}" = "{meaning}"' if not re.fullmatch(r"[\w-]+", text) else f'{text} = "{meaning}"'
        yield _line(line, "Not recognised: skip leaves it out." if meaning == "skip" else "by its name.")
    yield ""


def _contract(chosen: dict[str, Found]) -> Iterator[str]:
    name = chosen["position"].last if "position" in chosen else ""
    word = next(word for pattern, word in _POSITIONS if pattern.fullmatch(name))
    order = "partition" if "partition" in chosen else "key"
    yield _line("[stream]", "the promises of the system: docs/promise-file.md has all fields.")
    yield _line('closed = "<="', 'a watermark covers events at its own position; "<" if it does not.')
    yield 'cut = "delivery"'
    yield f'position = "{word}"'
    yield _line(f'order_key = "{order}"', 'rows come in order by partition, by key, or "global": all of them.')
    yield _line('delivery = "at-least-once"', '"exactly-once" if each event comes once.')
    yield _line('replay = "session"', 'a connection may repeat rows; "resume": only a new one.')
    yield 'atomic_unit = "none"'
    yield 'identity = "position+key+value"'
    yield _line("is_position_unique = false", "several transactions may have one position.")
    if "partition" in chosen:
        yield 'wm_scope = "partition"'
