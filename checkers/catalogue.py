"""The list of all anomaly names that promises may forbid and checks may report, each with a one-line meaning."""

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
