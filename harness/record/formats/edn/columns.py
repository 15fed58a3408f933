"""The fast path for EDN and JSON: lines of transactions over numbers, read into columns without an object for each.

Theory of operation. Histories repeat themselves: once numbers are taken out, few different lines are left.
1. A list of numbers becomes [~], any other number 0. Then the steps of transactions (`Notation.steps`) become one byte
   each, and the steps of one transaction a single byte. What is left of a line is its head; a file has some ten
   different ones.
2. Each different head is read once, as `harness.record.formats.edn.jepsen` reads any line, with a number of its own in
   each place of a 0. So it is known which field each number belongs to. A head is plain only if all of them are a
   process, a time or an index.
3. The numbers themselves are read by NumPy, in order of the text.
So there is no second opinion of what a map means here: a line that differs in anything but its numbers is another head.
Numbers of more than 18 digits, or with leading zeros, and keys and values that need a name are not plain.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from harness.core.columns import NAMED, Int8s, Int64s
from harness.record.formats.edn.jepsen import checked
from harness.record.formats.edn.notation import COMMA, KINDS, NOTATIONS, READ_LIST, Notation, NotationName

TYPES: Final = ("ok", "fail", "info", "invoke")
INVOKE: Final = TYPES.index("invoke")
_WIDTH: Final = np.array([0, 2, 2, 2, 1, 1, 1])  # The numbers in a step outside of a list, by kind.
_STEPS: Final = b"\x01"  # The steps of a transaction, in a head.
_RESERVED: Final = (b"~", b"\0", COMMA, *(bytes([kind]) for kind in KINDS))
_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_ONLY_NUMBERS: Final = bytes(byte if byte in b"0123456789" else 32 for byte in range(256))
_DIGITS_MAX: Final = 18
_HEADS_MAX: Final = 1000  # Different heads that are remembered.
_MARK: Final = 10**17  # The numbers from here on stand for those of a line while its head is read.
_ABSENT: Final = _MARK - 1  # Stands for an index or a time that is absent.
_PLACES: Final = ("type", "process", "time", "number", "before", "size")


class Head(NamedTuple):
    """A line without its steps and numbers.

    `process`, `time` and `number` (its index) are places among its numbers; -1: absent. `before` of its `size` numbers
    stand before the steps.
    """

    type: int
    error: str | None
    process: int
    time: int
    number: int
    before: int
    size: int


class Events(Struct, frozen=True, kw_only=True):
    """Invocations and completions of transactions, as columns: n events with m steps, r elements read.

    `error` has the places of errors in `errors`. An absent index or time is -1.
    """

    type: Int8s  # (n,) places in TYPES
    process: Int64s  # (n,)
    time: Int64s  # (n,)
    index: Int64s  # (n,)
    error: Int64s  # (n,)
    errors: list[str | None]
    step_start: Int64s  # (n + 1,) steps of event i are step_start[i]:step_start[i + 1]
    kind: Int8s  # (m,)
    key: Int64s  # (m,)
    value: Int64s  # (m,) 0 where there is none
    element_start: Int64s  # (m + 1,)
    elements: Int64s  # (r,)


def even_lines(text: bytes, name: NotationName) -> list[bytes]:
    """The lines that may be plain; none if some cannot be."""
    if any(each in text for each in _RESERVED):
        return []
    text = NOTATIONS[name].even(text.removesuffix(b"\n"))
    return text.split(b"\n") if text.strip() else []


def events_of(lines: Sequence[bytes], name: NotationName) -> Events | None:
    """The events in those lines; None unless all of them are plain."""
    notation = NOTATIONS[name]
    pieces = notation.lists.split(b"\n".join(lines))
    elements = _numbers(b" ] ".join([*pieces[1::2], b""]))
    outside = _numbers(b"[~]".join(pieces[::2]))
    if elements is None or outside is None:
        return None
    ends = np.flatnonzero(np.frombuffer(elements.text, np.uint8) == ord("]"))
    lengths = np.diff(np.searchsorted(elements.start, ends), prepend=0)
    found = _without_steps(outside.text, notation)
    if found is None:
        return None
    lines, counts, kinds = found
    places = {line: place for place, line in enumerate(dict.fromkeys(lines))}
    heads = [head for line in places if (head := _head(line, name)) is not None]
    if len(heads) < len(places):
        return None
    which = np.array([places[line] for line in lines])
    numbers = np.append(outside.value, -1)  # The last one is read where a field is absent.
    return _events(heads, which, counts, kinds, numbers, lengths, elements.value)


class _Numbers(NamedTuple):
    """A text with 0 for each number, the positions of numbers in it, and the numbers."""

    text: bytes
    start: Int64s
    value: Int64s


def _numbers(text: bytes) -> _Numbers | None:
    """The numbers in that text; None if one is too long or has leading zeros."""
    marked = np.frombuffer(b" %b " % text.translate(_DIGITS), np.uint8)
    is_digit = marked == ord("0")
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    start, length = edges[::2], edges[1::2] - edges[::2]
    first = np.frombuffer(text, np.uint8)[start - 1]
    if len(start) and (length.max() > _DIGITS_MAX or ((first == ord("0")) & (length > 1)).any()):
        return None
    is_kept = np.append(True, ~(is_digit[1:] & is_digit[:-1]))
    is_kept[[0, -1]] = False
    value = np.fromstring(text.translate(_ONLY_NUMBERS), np.int64, sep=" ")
    dropped = np.cumsum(length) - length - np.arange(len(length))
    return _Numbers(marked[is_kept].tobytes(), start - 1 - dropped, value)


def _without_steps(text: bytes, notation: Notation) -> tuple[list[bytes], Int64s, Int8s] | None:
    """The heads of all lines, their numbers of steps, and the kinds of all steps; None if a separator is missing."""
    for kind, step in notation.steps:
        text = text.replace(step, bytes([kind]))
    separator, *longer = notation.separators
    for other in longer:
        for kind in KINDS:
            text = text.replace(bytes([kind]) + other, bytes([kind]) + separator)
    signs = np.frombuffer(text, np.uint8)
    is_step = signs <= READ_LIST
    if notation.is_separated and (is_step[1:] & is_step[:-1]).any():
        return None
    is_inside = is_step.copy()
    is_inside[1:-1] |= (signs[1:-1] == ord(separator)) & is_step[:-2] & is_step[2:]
    is_kept = np.append(True, ~(is_inside[1:] & is_inside[:-1]))
    heads = np.where(is_step, _STEPS[0], signs)[is_kept].astype(np.uint8).tobytes().split(b"\n")
    places, ends = np.flatnonzero(is_step), np.flatnonzero(signs == ord("\n"))
    counts = np.diff(np.searchsorted(places, ends), prepend=0, append=len(places))
    return heads, counts, signs[places].astype(np.int8)


@lru_cache(_HEADS_MAX)
def _head(text: bytes, name: NotationName) -> Head | None:
    """The head in that text; None if it is not plain."""
    notation = NOTATIONS[name]
    pieces = text.split(b"0")
    size = len(pieces) - 1
    marked = b"".join([piece + b"%d" % (_MARK + place) for place, piece in enumerate(pieces[:-1])]) + pieces[-1]
    step = b"%d".join(notation.steps[0][1].split(b"0")) % (_MARK + size, _MARK + size + 1)
    steps = [[f"{notation.names.mark}append", _MARK + size, _MARK + size + 1]] * text.count(_STEPS)
    try:
        form = notation.form(marked.replace(_STEPS, step))
        each, index = checked(form, notation.names, place="", number=_ABSENT, previous=-1)
    except ValueError:
        return None
    places = [-1 if number in {0, _ABSENT} else number - _MARK for number in (each.process or 0, each.time_ns, index)]
    is_plain = each.f == "txn" and each.process is not None and each.value == steps and len(steps) <= 1
    if not is_plain or b"~" in text or sorted(place for place in places if place >= 0) != list(range(size)):
        return None
    before = text.partition(_STEPS)[0].count(b"0")
    process, time, number = places
    return Head(TYPES.index(each.type), each.error, process, time, number, before, size)


def _events(
    heads: list[Head], which: Int64s, counts: Int64s, kind: Int8s, numbers: Int64s, lengths: Int64s, elements: Int64s
) -> Events | None:
    """The events with those heads: `counts` steps each, of those kinds, and all numbers in order of the text."""
    of_event = {name: np.array([getattr(head, name) for head in heads])[which] for name in _PLACES}
    size, before = of_event["size"], of_event["before"]
    step_start = np.append(0, np.cumsum(counts))
    width = _WIDTH[kind]
    step_width = np.append(0, np.cumsum(width))
    inside = step_width[step_start[1:]] - step_width[step_start[:-1]]
    start = np.cumsum(size + inside) - size - inside

    def field(name: str) -> Int64s:
        place = of_event[name]
        at = start + place + np.where(place >= before, inside, 0)
        return numbers[np.where(place >= 0, at, -1)]

    at = np.repeat(start + before - step_width[step_start[:-1]], counts) + step_width[:-1]
    key, value = numbers[at], np.where(width > 1, numbers[at + width - 1], 0)
    if any(len(each) and each.max() >= NAMED for each in (key, value, elements)):
        return None
    length = np.zeros(len(kind), np.int64)
    length[kind == READ_LIST] = lengths
    return Events(
        type=of_event["type"].astype(np.int8),
        process=np.maximum(field("process"), 0),
        time=field("time"),
        index=field("number"),
        error=which,
        errors=[head.error for head in heads],
        step_start=step_start,
        kind=kind,
        key=key,
        value=value,
        element_start=np.append(0, np.cumsum(length)),
        elements=elements,
    )
