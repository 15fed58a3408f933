"""The client of one process: it runs transactions on one member, and reports each outcome exactly.

Theory of operation. An operation sends at most one request that writes, once; `errors.py` interprets what comes back.
1. A transaction that only reads, or that only touches registers, is one Txn: etcd applies it at one revision.
2. An append needs the list first. So a transaction with appends reads all its lists by one Txn, and writes by a second
   that compares the revision of each list it has seen. If one has changed since, the member changes nothing: `fail`.
   With `locks` it has locks of its lists instead.
3. The header of a Txn that writes has the revision that it made: it is the operation's position, and its number.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from clusters.etcd import planted, rows
from clusters.etcd.line import Line
from clusters.etcd.locks import GONE, locked
from clusters.etcd.messages import message
from clusters.etcd.setup import KEPT_REVISIONS, compacts
from clusters.servers.client import Progress, Refused, ServerClient
from clusters.servers.values import appended, elements, encoded, held, overwritten
from harness.core.machine import Settings
from harness.core.record import Json, MicroOp
from harness.core.seams import Address, Completion, Doors, Invocation

_EQUAL, _BY_MOD_REVISION, _BY_VALUE = 0, 2, 3
_COMPACT_EVERY: Final = 100
Lists = Mapping[Json, tuple[int, list[Json]]]  # Each list with the revision that changed it last.


class EtcdClient(ServerClient[Line]):
    """A process's connection to one member."""

    def __init__(self, process: int, doors: Doors, settings: Settings) -> None:
        super().__init__(process, doors)
        self._compacts = compacts(settings)
        self._discards = 0  # The revision to compact before the next operation; 0: none.
        self._locking = settings.options["locks"]
        self._is_stale = settings.options["reads"] == "serializable" or planted.STALE_READS in settings.bugs

    def _dial(self, address: Address) -> Line:
        return Line(address)

    async def _carry_out(self, line: Line, invocation: Invocation, progress: Progress) -> Completion:
        await self._compact(line)
        if invocation.mops is None:
            return await self._operate(line, invocation, progress)
        if any(mop.f == "append" for mop in invocation.mops):
            return await self._append(line, invocation.mops, progress)
        return await self._at_once(line, invocation.mops, progress)

    async def _append(self, line: Line, mops: Sequence[MicroOp], progress: Progress) -> Completion:
        """A transaction with appends: what it read must still be so when it writes."""
        keys = list(dict.fromkeys(mop.key for mop in mops))
        if self._locking != "off":
            return await self._under_locks(line, keys, mops, progress)
        before = await self._lists(line, keys)
        done, after = appended(mops, {key: elements for key, (_, elements) in before.items()})
        compare = [_compare(rows.key_of(key), mod_revision=revision) for key, (revision, _) in before.items()]
        answer = await self._write(line, progress, compare=compare, success=_puts(mops, after))
        if not answer.succeeded:
            return Completion(outcome="fail", error="a list has changed since it was read")
        return self._written(answer, done)

    async def _under_locks(
        self, line: Line, keys: Sequence[Json], mops: Sequence[MicroOp], progress: Progress
    ) -> Completion:
        """The same under locks of all its lists; only a fenced one checks that it still has them when it writes."""
        locks = await locked(line, [rows.lock_of(key) for key in keys])
        before = await self._lists(line, keys)
        done, after = appended(mops, {key: elements for key, (_, elements) in before.items()})
        compare = locks.fence if self._locking == "fenced" else []
        answer = await self._write(line, progress, compare=compare, success=_puts(mops, after))
        await locks.release(line)
        return self._written(answer, done) if answer.succeeded else Completion(outcome="fail", error=GONE)

    async def _lists(self, line: Line, keys: Sequence[Json]) -> Lists:
        answer = await line.ask("txn", message("TxnRequest", success=[self._read(rows.key_of(key)) for key in keys]))
        found = {}
        for key, response in zip(keys, answer.responses, strict=True):
            pairs = response.response_range.kvs
            found[key] = (pairs[0].mod_revision, elements(pairs[0].value)) if pairs else (0, [])
        return found

    async def _at_once(self, line: Line, mops: Sequence[MicroOp], progress: Progress) -> Completion:
        """A transaction in one request: its reads, then the last value of each register that it writes."""
        keys = list(dict.fromkeys(mop.key for mop in mops if mop.f == "r"))
        last = {mop.key: mop.value for mop in mops if mop.f == "w"}
        is_stale = self._is_stale and not last
        success = [self._read(rows.key_of(key), is_stale=is_stale) for key in keys]
        success += [_put(rows.key_of(key), value) for key, value in last.items()]
        if not last:
            answer = await line.ask("txn", message("TxnRequest", success=success))
        else:
            answer = await self._write(line, progress, success=success)
        read: dict[Json, Json] = {}
        for key, response in zip(keys, answer.responses, strict=False):  # The writes have answers too.
            pairs = response.response_range.kvs
            stored = pairs[0].value if pairs else None
            read[key] = held(stored) if rows.is_register(key) else cast("Json", elements(stored))
        done = overwritten(mops, read)
        return self._written(answer, done) if last else Completion(outcome="ok", mops=done)

    async def _operate(self, line: Line, invocation: Invocation, progress: Progress) -> Completion:
        """A single register: its value is [key, value], or for a cas [key, [old, new]]."""
        key, value = cast("list[Json]", invocation.value)
        name = rows.cell_of(key)
        match invocation.f:
            case "read":
                request = message("TxnRequest", success=[self._read(name, is_stale=self._is_stale)])
                answer = await line.ask("txn", request)
                pairs = answer.responses[0].response_range.kvs
                return Completion(outcome="ok", value=[key, held(pairs[0].value if pairs else None)])
            case "write":
                await self._write(line, progress, success=[_put(name, value)])
            case _:
                old, new = cast("list[Json]", value)
                compare = [_compare(name, value=encoded(old))]
                answer = await self._write(line, progress, compare=compare, success=[_put(name, new)])
                if not answer.succeeded:
                    return Completion(outcome="fail", error="the register held something else")
        return Completion(outcome="ok", value=invocation.value)

    async def _write(self, line: Line, progress: Progress, **parts: object) -> Any:
        """The answer to the one request of an operation that writes."""
        progress.has_sent_write = True
        return await line.ask("txn", message("TxnRequest", **parts))

    def _written(self, answer: Any, done: tuple[MicroOp, ...]) -> Completion:
        revision = int(answer.header.revision)
        if self._compacts and revision % _COMPACT_EVERY == 0:
            self._discards = max(0, revision - KEPT_REVISIONS)
        return Completion(outcome="ok", mops=done, txn=revision, commit_ts=revision)

    async def _compact(self, line: Line) -> None:
        """Discard old revisions before an operation begins, so that a failure is not one of its predecessor."""
        revision, self._discards = self._discards, 0
        if revision:
            with suppress(Refused):  # Another client was faster.
                await line.ask("compact", message("CompactionRequest", revision=revision))

    def _read(self, key: bytes, *, is_stale: bool = False) -> Any:
        return message("RequestOp", request_range=message("RangeRequest", key=key, serializable=is_stale))


def _put(key: bytes, value: Json) -> Any:
    return message("RequestOp", request_put=message("PutRequest", key=key, value=encoded(value)))


def _puts(mops: Sequence[MicroOp], after: Mapping[Json, list[Json]]) -> list[Any]:
    """The writes of all lists that those steps change."""
    changed = dict.fromkeys(mop.key for mop in mops if mop.f == "append")
    return [_put(rows.key_of(key), after[key]) for key in changed]


def _compare(key: bytes, *, mod_revision: int | None = None, value: bytes | None = None) -> Any:
    """That the key was last changed at that revision (0: it does not exist), or that it holds that value."""
    if mod_revision is not None:
        return message("Compare", key=key, result=_EQUAL, target=_BY_MOD_REVISION, mod_revision=mod_revision)
    return message("Compare", key=key, result=_EQUAL, target=_BY_VALUE, value=value)
