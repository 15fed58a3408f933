"""Legal streams of Debezium, CockroachDB and etcd raise no alarm, and what is changed in them is found: a table.

    python -m tests.bench.public_streams LEGAL CHANGED

LEGAL streams of each kind are judged, and CHANGED with one of sixteen changes drawn. A change counts as undecidable if
the changed stream is one that the system may have sent: `ARGUED` says why, for each class.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from seamark import check
from tests.corpus.watched import CRDB, ETCD
from tests.worlds.streams.public import DEEDS, STREAMS, THINGS, Items, changed, drawn, lines

RULES: Final = (
    "missing-event",
    "resume-hole",
    "order-inversion",
    "late-event",
    "late-event-boundary",
    "duplicate-event",
    "divergent-duplicate",
    "wrong-value",
    "phantom-event",
    "watermark-regress",
    "watermark-from-future",
    "torn-unit",
    "outside-filter",
    "moved-key",
)
AGAIN: Final = "a task that restarts sends again what it had sent"
ARGUED: Final[Mapping[tuple[str, str, str], str]] = {
    **{("debezium", thing, "doubled"): AGAIN for thing in THINGS},
    ("debezium", "transaction", "lost"): "without full before-images the transaction may never have been",
    ("debezium", "tombstone", "lost"): "tombstones may be switched off, and compaction removes them",
    ("debezium", "row", "torn"): "without the source another value may have been written",
    ("debezium", "watermark", "moved"): "ends come on a topic of their own, and topics have no order among them",
    ("debezium", "watermark", "lost"): "the file may end, or the task restart, before the end of a transaction",
    ("debezium", "tombstone", "moved"): "a tombstone has no position, and repeats what the deletion said",
    ("cockroachdb", "row", "doubled"): AGAIN,
    ("cockroachdb", "transaction", "doubled"): AGAIN,
    ("cockroachdb", "tombstone", "doubled"): AGAIN,
    **{
        (kind, "watermark", deed): "a watermark may be sent less often, or twice"
        for kind in ("cockroachdb", "etcd")
        for deed in ("lost", "doubled")
    },
}


def verdict(kind: str, items: Items, folder: Path) -> tuple[str, set[str]]:
    """The verdict on a stream, and the anomalies that were found."""
    path = folder / "stream.jsonl"
    if kind in ("postgresql", "mysql"):
        path.write_bytes(b"".join(msgspec.json.encode(item.line) + b"\n" for item in items))
        report = check(path, stream="debezium")
    else:
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines(items)))
        report = check(path, promises=_promises(kind, folder))
    return report.verdict, {finding.anomaly for finding in report.findings}


def _promises(kind: str, folder: Path) -> Path:
    path = folder / f"{kind}.toml"
    if not path.exists():
        contract = msgspec.to_builtins(CRDB if kind == "cockroachdb" else ETCD)
        fields = {name: value for name, value in contract.items() if value is not None}
        text = "".join(f"{name} = {msgspec.json.encode(value).decode()}\n" for name, value in fields.items())
        path.write_text(f"[stream]\n{text}\n[[promise]]\nforbids = {msgspec.json.encode(RULES).decode()}\n")
    return path


def legal(kind: str, count: int, folder: Path, first: int = 0) -> Counter[str]:
    """The verdicts on that many legal streams; an alarm is printed with its seed."""
    result: Counter[str] = Counter()
    for seed in range(first, first + count):
        word, anomalies = verdict(kind, drawn(kind, seed)[0], folder)
        result[word] += 1
        if anomalies:
            print(f"{kind} seed {seed}: {sorted(anomalies)}")
    return result


def changes(kind: str, count: int, folder: Path, first: int = 0) -> Counter[str]:
    """What became of that many changes: found, undecidable, or missed; a miss is printed with its seed."""
    result: Counter[str] = Counter()
    seed = first
    while result.total() < count:
        items, draw = drawn(kind, seed)
        thing, deed = draw.choice(THINGS), draw.choice(DEEDS)
        after = changed(draw, items, thing, deed)
        seed += 1
        if after is None or after == items:
            continue
        _, anomalies = verdict(kind, after, folder)
        family = "debezium" if kind in ("postgresql", "mysql") else kind
        outcome = "found" if anomalies else "undecidable" if (family, thing, deed) in ARGUED else "missed"
        result[outcome] += 1
        if outcome == "missed":
            print(f"{kind} seed {seed - 1}: {thing} {deed} was missed")
    return result


def main(legal_count: int, changed_count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kind in STREAMS:
            print(f"{kind}: {legal_count} legal {dict(legal(kind, legal_count, Path(folder)))}", flush=True)
            print(f"{kind}: {changed_count} changed {dict(changes(kind, changed_count, Path(folder)))}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
