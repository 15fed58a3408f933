"""The formats of streams that are known by name, and which of them a file has.

Most are mapping files in the folder `builtin`, which users may copy and change. A further one is a further file there.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from harness.core.errors import ScenarioError, known
from harness.core.record import Json
from harness.record.documents import read_toml
from harness.record.formats.promise_file import contract_of
from harness.record.formats.streams.debezium.format import debezium
from harness.record.formats.streams.envelopes import crdb
from harness.record.formats.streams.line import StreamFormat, decoded, inside
from harness.record.formats.streams.mappings.mapped import mapped
from harness.record.formats.streams.mappings.mapping import Mapping, mapping_of
from harness.record.formats.streams.mappings.names import CRDB, DEBEZIUM, TICDC_OPEN, files, names
from harness.record.formats.streams.mappings.open_protocol import open_protocol

_PARTS_OF_KNOWN: Final = ("format", "key", "stream")
# By name, the fields of which each message has one of each tuple.
_SIGNS: Final = {
    DEBEZIUM: (("op", "status"), ("source", "id")),
    CRDB: (("after", "resolved"), ("updated", "resolved", "source.ts_hlc")),
    TICDC_OPEN: (("key.ts",), ("key.t",)),
}
_NEAR: Final = 0.6  # The share of a format's signs from which a file is nearly in it.


class Likeness(NamedTuple):
    """How far a file has a format: the share of its signs that are there, and those that are not."""

    name: str
    share: float
    lacking: tuple[str, ...]


@cache
def builtin() -> dict[str, Mapping]:
    """The mapping of each format that is a file, by its name."""
    return {name: mapping_of(read_toml(Path(str(file)))) for name, file in files().items()}


def text_of(name: str) -> str | None:
    """The mapping file of a known format; None if it is none."""
    return files()[name].read_text(encoding="utf-8") if name in files() else None


def stream_format(name: str, key: str | None = None) -> StreamFormat:
    """The format of that name, or of that mapping file; `key` names the key's columns. Raises ScenarioError."""
    columns = () if key is None else tuple(column.strip() for column in key.split(","))
    if not all(columns):
        raise ScenarioError(f"--key {key}: it names columns, such as tenant,id")
    if name in names():
        return _known(name, columns)
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        known_ones = ", ".join(names())
        raise ScenarioError(
            f"--stream {name}: there is no such format: choose from {known_ones}, or name a mapping file"
        )
    parts = read_toml(path)
    try:
        return _adapted(parts, columns) if "format" in parts else mapped(path.name, mapping_of(parts), columns)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def _known(name: str, columns: tuple[str, ...]) -> StreamFormat:
    if name == DEBEZIUM:
        return debezium(columns)
    if name == CRDB:
        if columns:
            raise ScenarioError("--key: messages of a changefeed have their keys: create it WITH key_in_value")
        return crdb()
    if name == TICDC_OPEN:
        return open_protocol(TICDC_OPEN, columns)
    return mapped(name, builtin()[name], columns)


def _adapted(parts: dict[str, Any], columns: tuple[str, ...]) -> StreamFormat:
    """A known format of which a mapping file changes the contract, or names the key's columns."""
    for name in parts:
        known(name, _PARTS_OF_KNOWN, "part of a mapping file with a format")
    known(str(parts["format"]), names(), "format")
    given = parts.get("key", [])
    name, columns = str(parts["format"]), columns or tuple(map(str, given if isinstance(given, list) else [given]))
    form = _known(name, columns)
    changes = parts.get("stream", {})
    if not isinstance(changes, dict):
        raise ScenarioError("[stream]: it is no table of fields")
    contract = contract_of(msgspec.to_builtins(form.contract) | changes)
    if name in builtin():
        return mapped(name, msgspec.structs.replace(builtin()[name], stream=contract), columns)
    return form._replace(contract=contract)


def likeness(lines: Sequence[Json]) -> list[Likeness]:
    """The formats that these first lines of a file may have, the most likely first."""
    found = [_like(name, lines) for name in names()]
    return sorted((each for each in found if each.share >= _NEAR), key=lambda each: -each.share)


def _like(name: str, lines: Sequence[Json]) -> Likeness:
    """The likeness of the line that is most like the format. What is inside of an envelope counts more than it."""
    signs = _SIGNS.get(name) or tuple((sign,) for sign in builtin()[name].signs)
    best = Likeness(name, 0.0, ())
    for line in lines:
        for depth, message in enumerate(_contents(line)):
            lacking = tuple(" or ".join(sign) for sign in signs if not any(_has(message, one) for one in sign))
            share = 1 - len(lacking) / len(signs)
            # If two formats fit, the inner one, or the one with more signs, is meant.
            share += (depth / 10 + len(signs) / 1000) * (not lacking)
            best = max(best, Likeness(name, share, lacking), key=lambda each: each.share)
    return best


def _contents(line: Json) -> list[Json]:
    """The line, its key decoded, and the messages that it may hold."""
    line = line | {"key": decoded(line["key"])} if isinstance(line, dict) and "key" in line else line
    result, at = [line], line
    for name in ("value", "payload", "payload"):
        inner = decoded(at.get(name)) if isinstance(at, dict) else None
        at = inner[0] if isinstance(inner, list) and inner else inner if inner is not None else at
        if at is not result[-1]:
            result.append(at)
    return result


def _has(message: Json, name: str) -> bool:
    if isinstance(message, list):
        return name.isdecimal() and int(name) < len(message)
    return isinstance(message, dict) and (name in message or inside(message, name) is not None)


def hint(lines: Sequence[Json], given: str | None = None) -> str | None:
    """What to do with a file of those first lines, which was given as a stream of that format, or as none."""
    found = likeness(lines)
    whole = [each.name for each in found if not each.lacking]
    if whole and whole[0] != given:
        return f"it looks like a change stream in the format {whole[0]}: write --stream {whole[0]}"
    if found and not whole and given in {None, found[0].name}:
        lacking = " and ".join(found[0].lacking)
        return f"it is nearly a change stream in the format {found[0].name}: its lines lack {lacking}"
    return None
