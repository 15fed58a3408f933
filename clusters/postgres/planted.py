"""Deliberate bugs, by name: of our subscriber, for PostgreSQL's own we leave to PostgreSQL."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CONFIRM_BEFORE_STORE: Final = "confirm-before-store"

BUGS: Mapping[str, str] = MappingProxyType(
    {CONFIRM_BEFORE_STORE: "the subscriber confirms what it has received before it keeps it, so that a crash loses it"}
)
