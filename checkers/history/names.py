"""Names of keys, elements and epochs: the dictionary of a history, and the forms that sentences show."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from checkers.columns.files import read_columns
from harness.core.columns import NAMED
from harness.core.record import Json

Name = Callable[[int], str]  # Shows a key or an element.
EpochName = Callable[[int], str]  # Shows an epoch.
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


class Dictionary:
    """The ids of keys and elements, and back. Values that the history never named get an id below 0, only here."""

    def __init__(self, history: Path) -> None:
        path = history / "names.parquet"
        columns = read_columns(path, ("id", "json")).to_pydict() if path.is_file() else {"id": (), "json": ()}
        self._texts: dict[int, str] = dict(zip(columns["id"], columns["json"], strict=True))
        self._ids = {text: identity for identity, text in self._texts.items()}

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
        return tuple(map(self.identity, value)) if isinstance(value, list) else ()


def number(identity: int) -> str:
    """The plain form of a key or an element: its number, with a mark if that stands for another value."""
    return str(identity) if identity < NAMED else f"#{identity - NAMED}"


def epoch_name(saved_bits: int | None) -> EpochName:
    """A function that shows epochs in two parts, such as 7/3, if the number of bits of the lower part is known."""
    if saved_bits is None:
        return str
    return lambda epoch: f"{epoch >> saved_bits}/{epoch & ((1 << saved_bits) - 1)}"
