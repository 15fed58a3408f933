"""A mapping file, in TOML: the meaning of the fields in a foreign stream's lines, and the stream's contract.

[fields] has an expression for each item (see `fields`); [kinds] gives the meaning of each value of the field `kind`;
[stream] is the stream's contract, as in a promise file. Formats that Seamark knows are such files in the folder
`builtin`. An error message is one line with the place of the mistake.
"""

from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec

from checkers.history.units import is_final_only
from checkers.replication.sites import Rule
from harness.core.columns import KINDS
from harness.core.errors import ScenarioError, known
from harness.core.promises import StreamContract
from harness.record.documents import read_toml
from harness.record.formats.promise_file import contract_of, struct_of
from harness.record.formats.streams.mappings.fields import field

SKIP: Final = "skip"
DELETE: Final = "delete"  # A row that deletes its key, whatever its value.
REJECTED: Final = "rejected"  # A row of a site's exceptions table.
_PARTS: Final = (
    "about", "source", "signs", "envelope", "skip", "one_session", "time_unit", "fields", "kinds", "stream",
    "conflicts", "at_rest",
)  # fmt: skip
_SITES: Final = StreamContract(
    closed="<=", cut="unknown", position="lsn", identity="position+key+value"
)  # Of logs that no stream rule judges.
Unit = Literal["s", "ms", "us", "ns"]


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """The expression of each item. Only `key` and `position` are required."""

    key: Any
    position: Any
    value: Any = None  # Null: the row reports that its key was deleted.
    before: Any = None  # The row that it replaced, or some of its columns. Null tells nothing.
    kind: Any = None  # A line's kind, by [kinds]; without it, a row or a watermark.
    watermark: Any = None  # A line with this field, and without a row, is a watermark at this position.
    session: Any = None
    subscriber: Any = None
    partition: Any = None
    unit: Any = None  # The transaction, or another unit that arrives as a whole.
    unit_rows: Any = None  # The unit's number of rows.
    ordinal: Any = None  # The row's number in its unit.
    epoch: Any = None
    parents: Any = None  # The logs that a declared log follows: a list of names, or one name.
    ranges: Any = None  # The hashes that a declared log has: pairs [low, high) below 2^63, or one pair.
    hash: Any = None  # The hash of a row's key.
    site: Any = None  # One of several that take writes: it committed the row, or rejected it.
    origin: Any = None  # The site where the row's transaction was born; without it, the same one.
    time: Any = None  # When the line was received; without it, its place in the file.

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if (given := getattr(self, name)) is not None:
                field(f"[fields] {name}", given)


class Mapping(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a mapping file. `signs` are fields that each such file has in its first lines."""

    fields: Fields
    stream: StreamContract
    kinds: dict[str, str] = {}
    skip: tuple[str, ...] = ()  # Lines in which one of these fields is true concern no row.
    one_session: bool = False
    conflicts: Rule | None = None  # The rule by which sites reject a row.
    at_rest: bool = False  # In the end each site has all changes.
    time_unit: Unit = "ns"
    envelope: bool = False  # Messages may come in an envelope with key, topic, partition and offset.
    about: str = ""
    source: str = ""
    signs: tuple[str, ...] = ()

    @property
    def own_kinds(self) -> tuple[str, ...]:
        """The kinds that a line may have under our own names: all of them if the mapping gives none."""
        return () if self.kinds else KINDS

    def may_have(self, kind: str) -> bool:
        """True if a line may be of that kind."""
        return self.fields.kind is not None and kind in {*self.kinds.values(), *self.own_kinds}


def read_mapping(path: Path) -> Mapping:
    """The content of a mapping file. Raises ScenarioError, in one line, for any mistake."""
    parts = read_toml(path)
    try:
        return mapping_of(parts)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def mapping_of(parts: dict[str, Any]) -> Mapping:
    """The mapping in a document. Raises ScenarioError."""
    for name in parts:
        known(name, _PARTS, "part of a mapping file")
    has_sites = isinstance(parts.get("fields"), dict) and "site" in parts["fields"]
    for name in ("fields",) if has_sites else ("fields", "stream"):
        if name not in parts:
            raise ScenarioError(f"it has no [{name}]")
    mapping = Mapping(
        fields=struct_of("[fields]", parts["fields"], Fields),
        stream=contract_of(parts["stream"]) if "stream" in parts else _SITES,
        kinds=_kinds(parts.get("kinds", {})),
        skip=_texts("skip", parts.get("skip", [])),
        signs=_texts("signs", parts.get("signs", [])),
        one_session=parts.get("one_session", has_sites) is True,
        conflicts=_rule(parts["conflicts"]) if "conflicts" in parts else None,
        at_rest=parts.get("at_rest", False) is True,
        time_unit=_time_unit(parts.get("time_unit", "ns")),
        envelope=parts.get("envelope", False) is True,
        about=str(parts.get("about", "")),
        source=str(parts.get("source", "")),
    )
    _require_sense(mapping)
    return mapping


def _texts(name: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise ScenarioError(f'{name}: it is a list of names of fields, such as {name} = ["Created"]')
    return tuple(given)


def _kinds(given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(kind, str) for kind in given.values()):
        raise ScenarioError('[kinds]: it is a table of texts, such as insert = "row"')
    for value, kind in given.items():
        known(kind, (*KINDS, SKIP, DELETE, REJECTED), f"kind of event ([kinds] {value})")
    return given


def _rule(given: Any) -> Rule:
    try:
        rule = msgspec.convert(given, Rule)
    except msgspec.ValidationError as error:
        raise ScenarioError(f'[conflicts]: {error}; write for example rule = "epoch" and primary = "A"') from None
    if problem := rule.problem:
        raise ScenarioError(f"[conflicts]: {problem}")
    return rule


def _time_unit(given: Any) -> Unit:
    known(str(given), get_args(Unit), "time_unit")
    unit: Unit = given
    return unit


def _require_sense(mapping: Mapping) -> None:
    if mapping.fields.site is not None and mapping.fields.unit is None:
        raise ScenarioError("[fields]: it has a site and no unit: name the field with the row's transaction")
    is_of_sites = mapping.conflicts is not None or mapping.at_rest or mapping.fields.origin is not None
    if mapping.fields.site is None and (is_of_sites or mapping.may_have(REJECTED)):
        raise ScenarioError(
            "[fields]: origin, rejected rows, [conflicts] and at_rest are about sites: name the field site"
        )
    if mapping.fields.session is None and not mapping.one_session:
        raise ScenarioError(
            "[fields]: no field is the session: name the field of a connection, or write one_session = true "
            "above [fields] if there was only one"
        )
    if (mapping.fields.parents or mapping.fields.ranges) and not mapping.may_have("successors"):
        raise ScenarioError(
            "[fields]: only lines of kind successors have parents and ranges: name the field kind, and in [kinds] "
            'the lines that declare a log, such as shard = "successors"'
        )
    if mapping.kinds and mapping.fields.kind is None:
        raise ScenarioError("there is [kinds], and [fields] has no kind: name the field that [kinds] is about")
    if mapping.stream.wm_scope == "partition" and mapping.fields.partition is None:
        raise ScenarioError(
            '[fields]: it has no partition, and wm_scope is "partition": write partition = "..." with the name of the '
            "field that holds it"
        )
    is_by_number = mapping.stream.identity == "position+key+ordinal" and not is_final_only(mapping.stream)
    if is_by_number and mapping.fields.ordinal is None:
        raise ScenarioError(
            '[fields]: it has no ordinal, and identity is "position+key+ordinal": write ordinal = "..." with the name '
            'of the field that holds the row\'s number in its unit, or under [stream] identity = "position+key" if a '
            'position has one row of a key, else identity = "position+key+value"'
        )
