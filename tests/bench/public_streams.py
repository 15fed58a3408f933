"""Legal streams of Debezium, CockroachDB and etcd raise no alarm, and what is changed in them is found: a table.

    python -m tests.bench.public_streams LEGAL CHANGED [FIRST]

LEGAL streams of each kind are judged, and CHANGED with one of sixteen changes drawn, from seed FIRST on. The setups are
those of `tests.worlds.streams.public`. Lines of Debezium have their offsets, from 0 on, as tools for Kafka print them.
Half of the users of a stream that promises each event at least once declare that each comes once; those of Debezium
declare with it that each deletion has its tombstone, and that all was at rest when the topics were read.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from seamark import check
from tests.corpus.watched import CRDB, ETCD
from tests.oracles.public_streams import is_legal, is_permitted
from tests.worlds.streams.public import DEEDS, STREAMS, THINGS, Items, changed, drawn, lines, logs

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
    "lost-tombstone",
    "early-event",
    "watermark-regress",
    "watermark-from-future",
    "torn-unit",
    "outside-filter",
    "moved-key",
)
# Resolved timestamps are of the cluster's clock. A watch that breaks goes on behind what it has seen, and revisions are
# those of writes.
CONTRACTS: Final = {
    "cockroachdb": msgspec.structs.replace(CRDB, follows_clock=True),
    "etcd": msgspec.structs.replace(ETCD, sessions="joined", wm_idle="rests"),
}
DECLARED: Final = """format = "debezium"
[stream]
delivery = "exactly-once"
tombstones = "each"
tail = "settled"
"""


def verdict(kind: str, items: Items, folder: Path, *, is_once: bool) -> tuple[str, set[str]]:
    """The verdict on a stream, and the anomalies that were found."""
    path = folder / "stream.jsonl"
    if kind in ("postgresql", "mysql"):
        offsets: Counter[str] = Counter()
        with path.open("wb") as file:
            for item in items:
                topic = item.line["topic"]
                file.write(msgspec.json.encode(item.line | {"offset": offsets[topic]}) + b"\n")
                offsets[topic] += 1
        once = folder / "once.toml"
        once.write_text(DECLARED)
        report = check(path, stream=str(once) if is_once else "debezium")
    else:
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines(items)))
        report = check(path, promises=_promises(kind, folder, is_once=is_once))
    return report.verdict, {finding.anomaly for finding in report.findings}


def _promises(kind: str, folder: Path, *, is_once: bool) -> Path:
    path = folder / f"{kind}-{is_once}.toml"
    if not path.exists():
        contract = msgspec.to_builtins(CONTRACTS[kind]) | ({"delivery": "exactly-once"} if is_once else {})
        fields = {name: value for name, value in contract.items() if value is not None}
        text = "".join(f"{name} = {msgspec.json.encode(value).decode()}\n" for name, value in fields.items())
        path.write_text(f"[stream]\n{text}\n[[promise]]\nforbids = {msgspec.json.encode(RULES).decode()}\n")
    return path


def legal(kind: str, count: int, folder: Path, first: int = 0) -> Counter[str]:
    """The verdicts on that many legal streams; an alarm is printed with its seed."""
    result: Counter[str] = Counter()
    for seed in range(first, first + count):
        items, _, is_once = drawn(kind, seed)
        word, anomalies = verdict(kind, items, folder, is_once=is_once)
        result[word] += 1
        if anomalies:
            print(f"{kind} seed {seed}: {sorted(anomalies)}")
    return result


def changes(kind: str, count: int, folder: Path, first: int = 0) -> Counter[str]:
    """What became of that many changes: found, undecidable, missed, or a false alarm; and what was no change.

    What the documentation permits to any stream of the kind is "permitted": it is not counted among the changes, and
    must raise no alarm. A change is undecidable if the system may have sent the changed stream
    (`tests.oracles.public_streams`): it is its own legal twin, of the same bytes. Then a finding is a false alarm.
    Prints the classes, and the seed of each miss.
    """
    result: Counter[str] = Counter()
    classes: dict[str, Counter[str]] = {}
    seed = first
    while result.total() - result["permitted"] < count:
        items, draw, is_once = drawn(kind, seed)
        thing, deed = draw.choice(THINGS), draw.choice(DEEDS)
        after = changed(draw, items, thing, deed)
        seed += 1
        if after is None or logs(kind, after) == logs(kind, items):
            continue
        _, anomalies = verdict(kind, after, folder, is_once=is_once)
        is_twin = is_legal(kind, after, is_once=is_once)
        unseen = "permitted" if is_permitted(kind, thing, deed, is_once=is_once) else "undecidable"
        outcome = ("FALSE ALARM" if is_twin else "found") if anomalies else unseen if is_twin else "missed"
        result[outcome] += 1
        classes.setdefault(f"{thing} {deed}", Counter())[outcome] += 1
        if outcome in ("missed", "FALSE ALARM"):
            print(f"{kind} seed {seed - 1}: {thing} {deed}: {outcome} {sorted(anomalies)}")
    for name, outcomes in sorted(classes.items()):
        print(f"  {name:20} {dict(outcomes)}")
    return result


def main(legal_count: int, changed_count: int, first: int = 0) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kind in STREAMS:
            print(f"{kind}: {legal_count} legal {dict(legal(kind, legal_count, Path(folder), first))}", flush=True)
            print(
                f"{kind}: {changed_count} changed {dict(changes(kind, changed_count, Path(folder), first))}", flush=True
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
