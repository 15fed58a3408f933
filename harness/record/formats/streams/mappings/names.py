"""The names of the formats of streams that are known, and the mapping files of those that have one."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

CRDB: Final = "crdb"
DEBEZIUM: Final = "debezium"
TICDC_OPEN: Final = "ticdc-open"
_SUFFIX: Final = ".toml"


@cache
def files() -> Mapping[str, Traversable]:
    """The mapping file of each format that has one, by its name, in order."""
    found = (resources.files(__package__) / "builtin").iterdir()
    return {each.name.removesuffix(_SUFFIX): each for each in sorted(found, key=str) if each.name.endswith(_SUFFIX)}


def names() -> tuple[str, ...]:
    """The names of all known formats."""
    return (CRDB, DEBEZIUM, *files(), TICDC_OPEN)
