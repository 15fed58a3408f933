"""Deliberate bugs, by name: in our subscriber; PostgreSQL's own bugs are left to PostgreSQL."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CONFIRM_BEFORE_STORE: Final = "confirm-before-store"

BUGS: Mapping[str, str] = MappingProxyType(
    {CONFIRM_BEFORE_STORE: "the subscriber confirms what it has received before it keeps it, so that a crash loses it"}
)
