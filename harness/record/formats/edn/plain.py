"""The fast path for plain EDN: lines that hold one map each, of keywords and numbers, are read as JSON.

A few replacements turn such lines into JSON, which a decoder in C reads twenty times as fast as `forms` reads EDN.
Other text either is no JSON after the replacements, or is excluded before:

1. A string may hold anything, so a line with a quotation mark is not plain; nor is one with JSON's `null`, which EDN
   lacks.
2. Integers of 19 digits or more may exceed 64 bits, and deep nesting may exceed its limit: not plain.
3. A keyword mistaken for a field's name leaves a colon where JSON allows none.
4. JSON's decoder keeps the last of two fields with one name, EDN rejects them: so fields are counted before and after.
   So are steps, as the value of one may be a list that looks like another.

Lines that are not plain take the slow path, one by one; if one of them has an error, the whole block does.
"""

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Annotated, Final, Literal

import msgspec

from harness.core.record import Json

_NUMBER = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_STEPS: Final = (b"append", b"r", b"w")
_TYPES: Final = (b"invoke", b"ok", b"fail", b"info")
_FIELDS: Final = (b"type", b"f", b"value", b"process", b"time", b"index", b"error")
_GET_FIELDS: Final = tuple(attrgetter(name.decode()) for name in _FIELDS)
# For each field, and for steps, the replacement of its name. A name that is not converted here is never a field.
_WORDS_OF_TRANSACTIONS: Final = (
    ([b":type,:%b" % name for name in _TYPES], [b'"type":"%b"' % name for name in _TYPES]),
    ([b":f,:txn"], [b'"f":"txn"']),
    *(([b":%b," % name], [b'"%b":' % name]) for name in _FIELDS[2:]),
    ([b"[:%b," % name for name in _STEPS], [b'["%b",' % name for name in _STEPS]),
)
_WORD: Final = re.compile(rb":[A-Za-z][A-Za-z0-9_-]*")
_WORD_IN_VALUE: Final = re.compile(rb"(?<=[,\[:]):[A-Za-z][A-Za-z0-9_-]*")
_NIL: Final = re.compile(rb"(?<=[,\[])nil(?=[,\]}])")
_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_COMMAS: Final = bytes.maketrans(b" ", b",")
_LONG: Final = b"0" * 19
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]")
_DEPTH_MAX: Final = 6  # Nesting depth of the lists in a plain line.


class PlainStep(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A micro-operation of three parts."""

    f: Literal["r", "append", "w"]
    key: Json
    value: Json


class PlainTransaction(msgspec.Struct, forbid_unknown_fields=True):
    """An event of a transaction, as `harness.record.formats.edn.jepsen` checks it. None: the field was absent."""

    type: Literal["invoke", "ok", "fail", "info"]
    value: tuple[PlainStep, ...]
    f: Literal["txn"] | None = None
    process: _NUMBER | None = None
    time: _NUMBER | None = None
    index: _NUMBER | None = None
    error: str | None = None


_TRANSACTIONS: Final = msgspec.json.Decoder(PlainTransaction)
_MAPS: Final = msgspec.json.Decoder(dict[str, Json])


class PlainLines:
    """A reader of blocks of whole lines. It first tries the variant that fitted the previous block."""

    def __init__(self, one_form: Callable[[bytes], Json]) -> None:
        """A reader with `one_form` as its slow path: the form of a line.

        It raises ValueError unless there is exactly one.
        """
        self._one_form = one_form
        self._are_transactions = True

    def read(self, block: bytes) -> list[PlainTransaction | Json] | None:
        """The values of the lines, in order; None if the block has to take the slow path."""
        lines, every, others = block, list[bytes](), dict[int, bytes]()
        if b'"' in block or b":nemesis" in block:
            every = [line for line in block.splitlines() if line.strip()]
            others = {place: line for place, line in enumerate(every) if b'"' in line or b":nemesis" in line}
            if len(others) * 2 > len(every):
                return None
            lines = b"\n".join([line for place, line in enumerate(every) if place not in others])
        plain = self._plain(lines)
        if plain is None or (others and len(plain) + len(others) != len(every)):
            return None
        return self._merged(plain, others) if others else [*plain]

    def _plain(self, lines: bytes) -> list[PlainTransaction] | list[dict[str, Json]] | None:
        if not lines.isascii() or b"null" in lines or _LONG in lines.translate(_DIGITS) or _is_deep(lines):
            return None
        lines = lines.replace(b",\n", b"\n").replace(b"\n {", b"\n{").replace(b", ", b",").translate(_COMMAS)
        found = _transactions(lines) if self._are_transactions else _maps(lines)
        if found is None:
            found = _maps(lines) if self._are_transactions else _transactions(lines)
            self._are_transactions ^= found is not None
        return found

    def _merged(
        self, plain: list[PlainTransaction] | list[dict[str, Json]], others: dict[int, bytes]
    ) -> list[PlainTransaction | Json] | None:
        """The plain lines merged with the others, in order; None if a line does not hold exactly one form."""
        following: Iterator[PlainTransaction | dict[str, Json]] = iter(plain)
        try:
            return [
                self._one_form(others[place]) if place in others else next(following)
                for place in range(len(plain) + len(others))
            ]
        except ValueError:
            return None


def _transactions(lines: bytes) -> list[PlainTransaction] | None:
    """The events of transactions; None unless all lines are such events."""
    text, counts = lines, []
    for before, after in _WORDS_OF_TRANSACTIONS:
        size = len(text)
        for old, new in zip(before, after, strict=True):
            text = text.replace(old, new)
        counts.append((len(text) - size) // (len(after[0]) - len(before[0])))  # All grow by the same amount.
    text = text.replace(b",nil]", b",null]")
    found = _decoded(text)
    if found is None:  # A keyword may be among keys and values, or be the error.
        found = _decoded(_WORD_IN_VALUE.sub(rb'"\g<0>"', text))
    if found is None:
        return None
    has = [sum([value is not None for value in map(get, found)]) for get in _GET_FIELDS]
    return found if [*has, sum([len(each.value) for each in found])] == counts else None


def _decoded(text: bytes) -> list[PlainTransaction] | None:
    try:
        return _TRANSACTIONS.decode_lines(text)
    except msgspec.DecodeError:
        return None


def _maps(lines: bytes) -> list[dict[str, Json]] | None:
    """Maps from keywords to plain values; None unless all lines are such maps."""
    if lines.count(b":") != sum([lines.count(before + b":") for before in (b",", b"{", b"[")]):
        return None  # A `null` inside a keyword would become JSON's own.
    text = _WORD.sub(rb'"\g<0>"', lines)
    text = _NIL.sub(b"null", text)
    for name in _FIELDS:
        text = text.replace(b'":%b",' % name, b'":%b":' % name)
    try:
        found = _MAPS.decode_lines(text)
    except msgspec.DecodeError:
        return None
    counts = [lines.count(b":%b," % name) for name in _FIELDS]
    has = [sum([":" + name.decode() in each for each in found]) for name in _FIELDS]
    return found if counts == has else None


def _is_deep(lines: bytes) -> bool:
    """True if lists are nested more than _DEPTH_MAX deep."""
    brackets = lines.translate(None, _NO_BRACKETS)
    for _ in range(_DEPTH_MAX):
        brackets = brackets.replace(b"[]", b"")
    return b"[" in brackets
