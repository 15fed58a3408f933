"""Bank: money moves between accounts, so every read of all accounts shows the same sum.

A plain read is a map from accounts to balances. Of each read only the first violation counts, in this order: an unknown
account, an account without a balance, a wrong sum, a balance below zero. The first read gives the accounts, and the sum
unless that is declared.

In transactions over lists an account is a key, and a transfer appends "N:-A" to one and "N:+A" to another: the balance
is the sum of the elements read. Accounts begin empty, so all of them together come to zero; a single one may be
negative. A read counts if it shows every account that transfers link to those it shows: money may have come from there.

Witnesses: for wrong-total, reads that ended after some transfer had begun (except the first read if it gives the sum);
for the others, reads.
"""

import decimal
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Final, NamedTuple

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import Trouble, judgement
from checkers.invariants.operations import Op, Token, operations, pairs, shown, token
from harness.core.columns import FAIL
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "bank"
_EXACT: Final = decimal.Context(prec=100, traps=[])  # 0.1 and 0.2 are 0.3, and what is no number is not finite.
UNEXPECTED, NIL, TOTAL, NEGATIVE = "unexpected-key", "nil-balance", "wrong-total", "negative-balance"
ANOMALIES: Final = {
    UNEXPECTED: "A read of a bank shows an account that does not exist.",
    NIL: "A read of a bank shows an account without a balance.",
    TOTAL: "A read of all accounts of a bank does not show the bank's total.",
    NEGATIVE: "An account of a bank is below zero.",
}


class Read(NamedTuple):
    """The balances of all accounts in one operation. `could_tear`: it ended after a transfer had begun."""

    number: int
    balances: tuple[tuple[Token, Decimal | None], ...]
    could_tear: bool


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all reads of a bank, whose sum may be declared. Raises HistoryError if a file is damaged."""
    return judged(operations(history, context.home(history)), context.bounds.total)


def judged(ops: Sequence[Op], total: int | None = None) -> Judgement:
    """The judgement of all reads of a bank. `total` is the sum of all accounts; None: the sum of the first read."""
    reads = list(_plain_reads(ops))
    witnesses = Counter(dict.fromkeys(ANOMALIES, 0))
    troubles: list[Trouble] = []
    if reads:
        is_declared = total is not None
        accounts = {account for account, _ in reads[0].balances}
        expected = total if total is not None else _sum(reads[0])
        for number, read in enumerate(reads):
            witnesses.update((UNEXPECTED, NIL, NEGATIVE))
            witnesses[TOTAL] += read.could_tear and (is_declared or number > 0)
            source = "as declared" if is_declared else f"as T{reads[0].number} shows"
            troubles += _violation(read, accounts, expected, source)
    for read in _list_reads(ops):
        witnesses[TOTAL] += read.could_tear
        troubles += _violation(
            read, {account for account, _ in read.balances}, 0, "as they began", may_be_negative=True
        )
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _plain_reads(operations: Sequence[Op]) -> Iterator[Read]:
    first = min((op.number for op in operations if op.f == "transfer" and op.outcome != FAIL), default=None)
    for op in operations:
        entries = pairs(op.value) if op.is_ok and op.f == "read" else None
        if entries is not None:
            balances = tuple((token(account), _balance(balance)) for account, balance in entries)
            yield Read(op.number, balances, first is not None and first < op.after)


def _balance(value: Json) -> Decimal | None:
    """The number as it is written, in JSON, in a text, or in EDN (a tagged value); None if it is none."""
    written = value.get("#decimal", value.get("#int")) if isinstance(value, dict) else value
    number = _EXACT.create_decimal(str(written))
    return number if number.is_finite() else None


def _sum(read: Read) -> Decimal:
    return reduce(_EXACT.add, (balance for _, balance in read.balances if balance is not None), Decimal(0))


def _violation(
    read: Read, accounts: set[Token], expected: Decimal | int, source: str, *, may_be_negative: bool = False
) -> Iterator[Trouble]:
    """The first violation of a read, if there is one."""
    strange = [account for account, _ in read.balances if account not in accounts]
    empty = [account for account, balance in read.balances if balance is None]
    negative = [(account, balance) for account, balance in read.balances if balance is not None and balance < 0]
    who = f"T{read.number}"
    if strange:
        yield _trouble(UNEXPECTED, read, f"{who} read an account {shown(strange[0])}, and there is none of that name.")
    elif empty:
        yield _trouble(NIL, read, f"{who} read account {shown(empty[0])} without a balance.")
    elif _sum(read) != expected:
        text = f"{who} read accounts that come to {_sum(read)} in all; they must come to {expected}, {source}."
        yield _trouble(TOTAL, read, text)
    elif negative and not may_be_negative:
        account, balance = negative[0]
        yield _trouble(NEGATIVE, read, f"{who} read a balance of {balance} in account {shown(account)}, below zero.")


def _trouble(anomaly: str, read: Read, sentence: str) -> Trouble:
    return Trouble(anomaly, sentence, (read.number,), (read.number,))


def _list_reads(operations: Sequence[Op]) -> Iterator[Read]:
    """Reads of whole groups of linked accounts, in transactions over lists."""
    group: dict[Token, tuple[Token, ...]] = {}
    begun: dict[Token, int] = {}  # By account: the first transfer.
    for op in operations:
        keys = [key for key, element in op.appends if _amount(element) is not None]
        if len(set(keys)) == 2:
            merged = tuple(dict.fromkeys((*group.get(keys[0], (keys[0],)), *group.get(keys[1], (keys[1],)))))
            group.update(dict.fromkeys(merged, merged))
            if op.outcome != FAIL:
                for key in keys:
                    begun.setdefault(key, op.number)
    for op in operations:
        seen = {} if op.appends else dict(op.reads)
        amounts = {key: [_amount(each) for each in elements] for key, elements in seen.items()}
        is_whole = all(other in seen for key in seen for other in group.get(key, ()))
        if is_whole and any(key in group for key in seen) and all(None not in each for each in amounts.values()):
            balances = tuple((key, Decimal(sum(filter(None, of)))) for key, of in amounts.items())
            yield Read(op.number, balances, any(begun.get(key, op.after) < op.after for key in seen))


def _amount(element: Token) -> int | None:
    """The amount of one element of an account; None if it is not a transfer."""
    if not isinstance(element, str):
        return None
    number, colon, amount = element.strip('"').partition(":")
    if not (colon and number.isdecimal() and amount[:1] in {"+", "-"} and amount[1:].isdecimal()):
        return None
    return int(amount)


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check, by_generation=True),)
