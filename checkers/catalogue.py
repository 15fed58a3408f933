"""The one list of anomaly names, each with its meaning in a line: what promises may forbid, and checks may find."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from checkers.streams.catalogue import RULES
from checkers.words.anomalies import INVARIANT, SYSTEM, TRANSACTIONAL, WATERMARK

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **TRANSACTIONAL,
        **{name: rule.meaning for name, rule in RULES.items()},
        **SYSTEM,
        **WATERMARK,
        **INVARIANT,
    }
)
