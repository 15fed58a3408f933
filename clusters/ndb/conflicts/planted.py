"""Deliberate bugs of sites that write to each other, by name: each read in one or two places."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

WINDOW_USES_SENT_EPOCH: Final = "window-uses-sent-epoch"
AUTHOR_NOT_SET: Final = "author-not-set"
EPOCH_BITS_TRUNCATED: Final = "epoch-bits-truncated"
EPOCH_TRANS_ROW_ONLY: Final = "epoch-trans-row-only"
TRANS_DEPS_IGNORED: Final = "trans-deps-ignored"
NO_REALIGN: Final = "no-realign"
ORIGIN_LOST: Final = "origin-lost"
MAX_DELETE_BY_ORDER: Final = "max-delete-by-order"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        WINDOW_USES_SENT_EPOCH: "B55: the window of a row ends when its epoch is sent, not when the other site has it",
        AUTHOR_NOT_SET: "B56: a row that the applier writes counts as a client's row",
        EPOCH_BITS_TRUNCATED: "B57: a row's epoch that does not fit its bits is compared as the number that fits",
        EPOCH_TRANS_ROW_ONLY: "B58: of a transaction in conflict only the rows in conflict are rejected",
        TRANS_DEPS_IGNORED: "B59: transactions of the same epoch that build on a rejected one are applied",
        NO_REALIGN: "B60: the row that won a conflict is not sent to the site that lost it",
        ORIGIN_LOST: "B61: a change that the applier writes is logged as a change of its own site",
        MAX_DELETE_BY_ORDER: "B66: one site applies every deletion, the other one only those of the row that is there",
    }
)
