"""A check that only etcd needs: a lease does not end before its time.

A transaction under a lock makes its lease after it was invoked, and nobody else revokes that lease. So if its write was
refused because the lock was gone, the lease had ended; and it must have lasted for its time to live until then.
"""

from typing import Final

from checkers.own.check import Check, Finding, Judgement
from checkers.own.history import History
from clusters.etcd.locks import GONE, LEASE_S

ANOMALY: Final = "early-lease"
_SECOND: Final = 1_000_000_000


def leases(history: History) -> Judgement:
    """The leases that ended before their time. A witness is a transaction with appends that was answered."""
    answered = [
        op
        for op in history.operations("txn")
        if op.complete_ns is not None and op.outcome != "info" and any(mop.f == "append" for mop in op.mops)
    ]
    lasted = [(op, ((op.complete_ns or 0) - op.invoke_ns) / _SECOND) for op in answered if op.error == GONE]
    return Judgement(
        witnesses={ANOMALY: len(answered)},
        findings=[
            Finding(
                anomaly=ANOMALY,
                sentence=f"T{op.index} lost its lock within {seconds:.3f} s, though its lease is for {LEASE_S} s.",
                ops=(op.index,),
            )
            for op, seconds in lasted
            if seconds < LEASE_S
        ],
    )


CHECKS: Final = (Check(name="leases", anomalies={ANOMALY: "A lease ended before its time to live."}, judge=leases),)
