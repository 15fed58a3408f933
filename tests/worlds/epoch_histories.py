"""Small random runs of a store that commits in epochs: locks, committed reads, and restarts that lose what is unsaved.

A transaction takes its locks step by step; whoever meets one that is held, fails. Its commit is one moment: all its
elements become visible, in the epoch that is current then. Committed reads take no lock, so they may be overtaken; what
wrote nothing reports an epoch that may already have passed. An epoch is GCI << BITS | micro.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from harness.core.record import Complete, Evidence, Invoke, MicroOp, State

BITS = 4
LOCKS = ("shared", "exclusive")
Store = dict[int, list[int]]


@dataclass
class _Transaction:
    index: int
    process: int
    asked: tuple[MicroOp, ...]
    done: list[MicroOp] = field(default_factory=list)

    def appends(self, key: int) -> list[int]:
        return [int(mop.value) for mop in self.done if mop.f == "append" and mop.key == key]  # type: ignore[arg-type]  # Elements are numbers.


@dataclass
class EpochStore:
    """The store. `lock` is that of all reads, None for a mixture; with `lag` a commit may take an epoch that passed."""

    draw: Random
    lock: str | None = None
    lag: int = 0
    is_reusing: bool = False  # After a restart epochs begin where the saved ones end.
    records: list[Evidence] = field(default_factory=list)
    committed: list[tuple[int, _Transaction]] = field(default_factory=list)
    epoch: int = 1 << BITS
    first_epoch: int = 1 << BITS  # Of this generation.
    element: int = 0
    restarts: int = 0

    def run(self, steps: int, *, restarts: int = 0, processes: int = 4, keys: int = 3) -> list[Evidence]:
        """Records of a run of so many steps, with reads of all keys at its end."""
        moments = [self.draw.randrange(steps) for _ in range(restarts)]
        self.state: Store = {key: [] for key in range(keys)}
        self.held: dict[int, tuple[str, set[int]]] = {}
        self.open: dict[int, _Transaction] = {}
        self.next_process = processes
        self.free = list(range(processes))
        for step in range(steps):
            for _ in range(moments.count(step)):
                self.restart()
            self._step(keys)
        for process in list(self.open):
            self._finish(process, "info")
        for key in range(keys):
            self._invoke((MicroOp("r", key, None, None, "shared"),))
            process = next(iter(self.open))
            self._go_on(process)
            self._go_on(process)
        return self.records

    def _step(self, keys: int) -> None:
        chance = self.draw.random()
        if chance < 0.04:
            micro = self.draw.random() < 0.7
            self.epoch = self.epoch + 1 if micro else ((self.epoch >> BITS) + 1) << BITS
        elif chance < 0.3 and self.free:
            self._invoke(tuple(self._mops(keys)))
        elif self.open:
            self._go_on(self.draw.choice(list(self.open)))

    def _mops(self, keys: int) -> Iterator[MicroOp]:
        for _ in range(self.draw.randint(1, 4)):
            key = self.draw.randrange(keys)
            if self.draw.random() < 0.5:
                self.element += 1
                yield MicroOp("append", key, self.element)
            else:
                yield MicroOp("r", key, None, None, self.lock or self.draw.choice(("committed", *LOCKS)))

    def _invoke(self, mops: tuple[MicroOp, ...]) -> None:
        index = sum(isinstance(record, Invoke) for record in self.records)
        process = self.free.pop(0)
        self.open[process] = _Transaction(index, process, mops)
        self._record(Invoke(index, len(self.records), len(self.records), process, "txn", None, mops))

    def _go_on(self, process: int) -> None:
        transaction = self.open[process]
        if len(transaction.done) == len(transaction.asked):
            self._commit(transaction)
            return
        mop = transaction.asked[len(transaction.done)]
        key, mode = int(mop.key), "exclusive" if mop.f == "append" else mop.lock  # type: ignore[arg-type]  # Keys are numbers.
        if mode in LOCKS and not self._take(process, key, str(mode)):
            self._finish(process, "fail")
            return
        seen: list[int] = [*self.state[key], *transaction.appends(key)]
        transaction.done.append(mop if mop.f == "append" else MicroOp("r", key, [*seen], None, mop.lock))

    def _take(self, process: int, key: int, mode: str) -> bool:
        held, owners = self.held.get(key, ("shared", set()))
        if owners - {process} and "exclusive" in (held, mode):
            return False
        stronger = "exclusive" if "exclusive" in (mode, held if process in owners else "") else "shared"
        self.held[key] = (stronger, owners | {process})
        return True

    def _commit(self, transaction: _Transaction) -> None:
        is_writer = any(mop.f == "append" for mop in transaction.done)
        lag = self.lag if is_writer else self.draw.choice((0, 0, 1))
        epoch = max(self.epoch - self.draw.randint(0, lag), self.first_epoch) if lag else self.epoch
        if is_writer:
            self.committed.append((epoch, transaction))
            self._apply(transaction)
        self._finish(transaction.process, "ok" if self.draw.random() < 0.95 else "info", epoch, is_writer=is_writer)

    def _apply(self, transaction: _Transaction) -> None:
        for mop in transaction.done:
            if mop.f == "append":
                self.state[int(mop.key)].append(int(mop.value))  # type: ignore[arg-type]  # Both are numbers.

    def _finish(self, process: int, outcome: str, epoch: int | None = None, *, is_writer: bool = False) -> None:
        transaction = self.open.pop(process)
        for _, owners in self.held.values():
            owners.discard(process)
        is_ok = outcome == "ok"
        self._record(
            Complete(
                transaction.index,
                len(self.records),
                "ok" if is_ok else "info" if outcome == "info" else "fail",
                mops=tuple(transaction.done) if is_ok else None,
                txn=transaction.index + 1000 if is_ok else None,
                epoch=epoch if is_ok else None,
                commit_ts=epoch if is_ok and is_writer else None,
            )
        )
        if outcome == "info":
            self.free.append(self.next_process)
            self.next_process += 1
        else:
            self.free.append(process)

    def restart(self) -> None:
        """The whole cluster fails, and begins again with what some earlier checkpoint had saved."""
        for process in list(self.open):
            self._finish(process, "info")
        restored = self.draw.randint(0, self.epoch >> BITS)
        self.committed = [(epoch, each) for epoch, each in self.committed if epoch >> BITS <= restored]
        self.state = {key: [] for key in self.state}
        for _, transaction in self.committed:
            self._apply(transaction)
        self.restarts += 1
        self.epoch = ((restored if self.is_reusing else self.epoch >> BITS) + 1) << BITS
        self.first_epoch = self.epoch
        self._record(State(len(self.records), "d1", "restart", self.restarts, [restored, self.epoch]))

    def _record(self, record: Evidence) -> None:
        self.records.append(record)


def records(
    draw: Random, *, steps: int = 120, restarts: int = 0, lock: str | None = None, lag: int = 0
) -> list[Evidence]:
    """The records of one random run, which is correct but for a lag of the epochs of commits."""
    return EpochStore(draw, lock=lock, lag=lag).run(steps, restarts=restarts)
