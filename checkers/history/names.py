"""Names of keys, elements and positions: the dictionary of a history, and the forms in which sentences show them."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from checkers.columns.files import read_columns
from checkers.columns.origins import LINE, POSITION, UNIT, UNTIMED, Origins
from harness.core.columns import NAMED
from harness.core.promises import Bounds, Naming, StreamContract
from harness.core.record import Json

Name = Callable[[int], str]  # The plain form of a key or an element.
EpochName = Callable[[int], str]  # The text of an epoch.
_PATTERNS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "commit-timestamp": ("timestamp {}", "resolved timestamp {}"),
        "revision": ("revision {}", "the watermark at revision {}"),
        "offset": ("offset {}", "the watermark at offset {}"),
        "lsn": ("LSN {}", "the watermark at LSN {}"),
        "epoch": ("epoch {}", "epoch {}"),
    }
)
_LSN_BITS: Final = 32
_SHOWN: Final = 4  # Of a longer list only a part is shown.
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


class Dictionary:
    """Ids of keys and elements, and the values they stand for.

    A value that the history lacks gets an id below 0, which only this object knows.
    """

    def __init__(self, history: Path) -> None:
        path = history / "names.parquet"
        self._table = read_columns(path, ("id", "json")) if path.is_file() else None

    @cached_property
    def _texts(self) -> dict[int, str]:  # Only findings need it, and a history may have millions of values.
        columns = {"id": (), "json": ()} if self._table is None else self._table.to_pydict()
        return dict(zip(columns["id"], columns["json"], strict=True))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {text: identity for identity, text in self._texts.items()}

    def value(self, identity: int) -> Json:
        """The value with that id."""
        return json.loads(self._texts[identity]) if identity in self._texts else identity

    def text(self, identity: int) -> str:
        """The text for that id in a report: a string without its quotes, else JSON."""
        text = self._texts.get(identity, f"?{identity}" if identity >= NAMED else str(identity))
        return json.loads(text) if text.startswith('"') else text

    def identity(self, value: Json) -> int:
        """The id of that value, as operations have it."""
        if type(value) is int and 0 <= value < NAMED:
            return value
        return self._ids.setdefault(_ENCODER.encode(value).decode(), -1 - len(self._ids))

    def identities(self, value: Json) -> tuple[int, ...]:
        """The ids of the elements of a list; none for anything else."""
        if not isinstance(value, list):
            return ()
        # Most elements are their own ids: a call for each takes three times as long.
        return tuple(each if type(each) is int and 0 <= each < NAMED else self.identity(each) for each in value)


def number(identity: int) -> str:
    """The plain form of a key or element: its number, marked if it is the id of a value that is no number."""
    return str(identity) if identity < NAMED else f"#{identity - NAMED}"


def listed(names: Sequence[str]) -> str:
    """The names as a sentence lists them, such as "x, y and z"."""
    return " and ".join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])


def shown_list(elements: Sequence[str], at: int | None = None) -> str:
    """A list as sentences show it: a long one by the elements around place `at`, or by its end, "..." for the rest."""
    stop = len(elements) if at is None else min(max(at + 2, _SHOWN), len(elements))
    start = max(0, stop - _SHOWN)
    before, after = ["..."] * (start > 0), ["..."] * (stop < len(elements))
    return f"[{', '.join([*before, *elements[start:stop], *after])}]"


def first_difference(one: Sequence[object], other: Sequence[object]) -> int | None:
    """The first place at which two lists differ, the end of the shorter one included; None for equal lists."""
    places = (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(places, None if len(one) == len(other) else min(len(one), len(other)))


def epoch_name(saved_bits: int | None) -> EpochName:
    """A function that shows epochs in two parts, such as 7/3, if the number of bits of the lower part is known."""
    if saved_bits is None:
        return str
    return lambda epoch: f"{epoch >> saved_bits}/{epoch & ((1 << saved_bits) - 1)}"


class Forms(Struct, frozen=True, kw_only=True):
    """The forms in which sentences name keys, positions and watermarks: patterns, and the notation of positions."""

    key_pattern: str = "{}"
    place_pattern: str = "position {}"
    mark_pattern: str = "watermark {}"
    notation: Literal["number", "epoch", "lsn", "time", "id"] = "number"
    low_bits: int | None = None
    texts: Callable[[int], str | None] | None = None  # The system's own text for a position, where it is no number.

    def key(self, text: str, *, is_number: bool) -> str:
        """The name of a key. The pattern applies to keys that are numbers."""
        return self.key_pattern.replace("{}", text) if is_number else text

    def digits(self, position: int) -> str:
        """A position without its noun: 10/10, 0/16B3748, 3.251 s +2, 42."""
        if self.texts is not None and (text := self.texts(position)) is not None:
            return text
        if self.notation in ("time", "id") and self.low_bits is not None:
            return _hybrid(position, self.low_bits, is_id=self.notation == "id")
        if self.notation == "lsn":
            return f"{position >> _LSN_BITS:X}/{position & ((1 << _LSN_BITS) - 1):X}"
        return epoch_name(self.low_bits)(position) if self.notation == "epoch" else str(position)

    def position(self, position: int) -> str:
        """A position with its noun."""
        return self.place_pattern.replace("{}", self.digits(position))

    def watermark(self, position: int) -> str:
        """A watermark with its noun."""
        return self.mark_pattern.replace("{}", self.digits(position))

    def announced(self, position: int, subscriber: str) -> str:
        """The beginning of a sentence that says that the watermark reached the subscriber."""
        verb = "declared complete" if self.mark_pattern == self.place_pattern else "announced"
        return f"{capital(self.watermark(position))} was {verb} to {subscriber}"


class Names(Struct, frozen=True):
    """The names of a history's keys, elements and positions. A call gives the plain form, as in fingerprints.

    `initial` is what registers held at first, as sentences name it.
    """

    plain: Name = number
    forms: Forms = field(default_factory=Forms)
    initial: str = "nothing"
    origins: Origins = Origins()

    def __call__(self, identity: int) -> str:
        return self.plain(identity)

    def key(self, identity: int) -> str:
        """A key as sentences name it, such as k54."""
        return self.forms.key(self.plain(identity), is_number=0 <= identity < NAMED)

    @property
    def has_times(self) -> bool:
        """False for a foreign stream whose file has no times."""
        return self.origins.text(UNTIMED, 0) is None

    def unit(self, number: int) -> str:
        """A unit by the system's own name of it; else its number."""
        return self.origins.text(UNIT, number) or str(number)

    def lines(self, events: Sequence[int]) -> str:
        """Where the file has those events: "line 7", "lines 3 and 7"; empty for a history that was recorded here."""
        found = list(dict.fromkeys(filter(None, (self.origins.text(LINE, event) for event in events))))
        return f"line{'s' if len(found) > 1 else ''} {listed(found)}" if found else ""

    def pair(self, key: int, value: int) -> str:
        """A value and its key, such as "value 17 of key k54"."""
        return f"value {self.plain(value)} of key {self.key(key)}"


PLAIN: Final = Names()


def forms_of(naming: Naming, contract: StreamContract | None, bounds: Bounds, origins: Origins | None = None) -> Forms:
    """The forms that a system declares, or that its contract suggests."""
    kind = contract.position if contract is not None else None
    notation: Literal["number", "epoch", "lsn"] = kind if kind in ("epoch", "lsn") else "number"
    place, mark = _PATTERNS.get(kind or "", (Forms().place_pattern, Forms().mark_pattern))
    return Forms(
        key_pattern=naming.key,
        place_pattern=naming.position or place,
        mark_pattern=naming.watermark or mark,
        notation=notation if naming.logical_bits is None else naming.logical_form,
        low_bits=bounds.saved_bits if naming.logical_bits is None else naming.logical_bits,
        texts=None if origins is None else origins.texts(POSITION),
    )


def _hybrid(timestamp: int, logical_bits: int, *, is_id: bool) -> str:
    """A hybrid timestamp: its seconds, and its counter unless that is 0. As an ID: its milliseconds and its counter."""
    ms, logical = timestamp >> logical_bits, timestamp & ((1 << logical_bits) - 1)
    if is_id:
        return f"{ms}-{logical}"
    return f"{ms // 1000}.{ms % 1000:03} s{f' +{logical}' if logical else ''}"


def capital(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]
