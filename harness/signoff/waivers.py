"""Waivers in a TOML file: findings for which a person takes responsibility, until a date."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from harness.core.errors import ScenarioError, known_at
from harness.record.documents import read_toml

_TABLE: Final = "waiver"
_EXAMPLE: Final = "expires = 2026-12-31"


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """A waiver for the findings with one fingerprint. It counts until the end of the day `expires` (UTC)."""

    fingerprint: str
    owner: str
    reason: str
    expires: date

    def is_expired(self, today: date) -> bool:
        """True from the day after `expires` on."""
        return today > self.expires


def read_waivers(path: Path, fingerprints: Sequence[str]) -> tuple[Waiver, ...]:
    """The waivers of a file, each for one of these fingerprints.

    Raises ScenarioError that names the file, the waiver by its number, and what to write instead.
    """
    content = read_toml(path)
    for name in content:
        known_at(path, name, (_TABLE,), "table")
    tables = content.get(_TABLE, [])
    if not isinstance(tables, list):
        raise ScenarioError(f"{path}: write each waiver as a separate table, under [[{_TABLE}]]")
    found = [_waiver(table, f"{path}, waiver {number}") for number, table in enumerate(tables, 1)]
    for number, each in enumerate(found, 1):
        if each.fingerprint in (other.fingerprint for other in found[: number - 1]):
            raise ScenarioError(f"{path}, waiver {number}: {each.fingerprint} has one above: leave one of the two")
        known_at(f"{path}, waiver {number}", each.fingerprint, tuple(fingerprints), "fingerprint")
    return tuple(found)


def _waiver(table: object, place: str) -> Waiver:
    if not isinstance(table, dict):
        raise ScenarioError(f"{place}: is not a table; write it under [[{_TABLE}]]")
    for name in table:
        known_at(place, name, Waiver.__struct_fields__, "field")
    for name in Waiver.__struct_fields__:
        if name not in table:
            raise ScenarioError(f"{place}: has no {name}; a waiver has {', '.join(Waiver.__struct_fields__)}")
        if name != "expires" and not (isinstance(table[name], str) and table[name].strip()):
            raise ScenarioError(f"{place}: its {name} must be a text, and not an empty one")
    if type(table["expires"]) is not date:
        raise ScenarioError(f"{place}: its expires must be a day without quotes, as in {_EXAMPLE}")
    return msgspec.convert(table, Waiver)
