"""Bank: transfers between the accounts of a bank, and reads of all of them at once.

An account is a list; a transfer appends "N:-A" to one and "N:+A" to another, N being its own number, so that every
element is unique. A read of the bank sees each transfer whole or not at all: the accounts sum to zero, as at the
beginning.
"""

from harness.core.record import MicroOp
from harness.scenario.workloads.grouped import Design, Turn, promise

ACCOUNTS = 5
LIFE = 120
READ_PERCENT = 40
DISORDERLY = 10  # One in this many transfers takes the higher of its two accounts first.


def bank(turn: Turn) -> tuple[MicroOp, ...]:
    """A read of all accounts, or a transfer between two."""
    if turn.percent < READ_PERCENT:
        return turn.reads(turn.keys)
    source = turn.picks[0]
    target = (source + 1 + turn.picks[1] % (ACCOUNTS - 1)) % ACCOUNTS
    amount = 1 + turn.picks[2]
    changes = sorted([(turn.keys[source], f"{turn.number}:-{amount}"), (turn.keys[target], f"{turn.number}:+{amount}")])
    if turn.number % DISORDERLY == 0:
        changes.reverse()
    return tuple(MicroOp("append", key, element) for key, element in changes)


BANK = Design(
    check="bank",
    size=ACCOUNTS,
    life=LIFE,
    mops=bank,
    has_pairs=False,  # Every transfer writes two keys.
    promises=(promise("bank", 1, "Every read of a bank shows transfers whole: its sum never changes.", "wrong-total"),),
)
