"""The cases that other projects wrote for their own checkers, each as records of ours.

Cases of Jepsen and Elle are histories in Jepsen's shape. Those of etcd and CockroachDB tell what a source did and what
its watchers were told; they become transactions of the source, and events.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp, StreamEvent
from harness.record.formats.edn.jepsen import records_of_maps

HISTORIES = Path(__file__).resolve().parents[3] / "shared" / "histories"
HALF = 2  # CockroachDB's cases have times such as 1.5, just before 2: positions are twice their times.
Case = dict[str, Any]


def cases(group: str) -> Iterator[Case]:
    """The cases of a group, as the file has them."""
    for line in (HISTORIES / group).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def jepsen_case(case: Case) -> list[Evidence]:
    """A case that is a history."""
    maps = ((f"operation {number}", each) for number, each in enumerate(case["history"]))
    return list(records_of_maps(str(case["name"]), maps, ""))


def etcd_case(case: Case) -> list[Evidence]:
    """What was persisted from revision 2 on, and what each watch was told, in its order.

    A put with a lease that does not exist has no effect, and a transaction without any has no revision.
    """
    records: list[Evidence] = []
    effective = [[step for step in txn if not step.get("lease")] for txn in case["persisted_txns"]]
    for revision, txn in enumerate(filter(None, effective), start=2):
        writes = [(step["put"] if "put" in step else (step["delete"], None)) for step in txn]
        records += source_transaction(len(records) // 2, revision, writes)
    for number, watch in enumerate(case["watches"]):
        start = watch["request"]["revision"]
        evidence: list[dict[str, Any]] = [{"kind": "open", "position": start - 1 if start else None}]
        for response in watch["responses"]:
            evidence += [
                {
                    "kind": "row",
                    "key": event["key"],
                    "value": event["value"],
                    "position": event["rev"],
                    "ordinal": place,
                }
                for place, event in enumerate(response["events"])
            ]
            if response["is_progress_notify"]:
                evidence.append({"kind": "watermark", "position": response["revision"]})
            if response["error"]:
                evidence.append({"kind": "error", "value": response["error"]})
        records += stream_events(f"{watch['client']}.{number}", evidence, len(records))
    return records


def crdb_case(case: Case) -> list[Evidence]:
    """The states of the table as transactions that lead from one to the next, and the feed's events."""
    records: list[Evidence] = []
    before: dict[str, Json] = {}
    for time, state in sorted(case.get("source_table_at", {}).items(), key=lambda each: int(each[0])):
        writes: list[tuple[Json, Json]]
        writes = [
            ([int(key)], state.get(key)) for key in sorted({*before, *state}) if before.get(key) != state.get(key)
        ]
        if writes:
            records += source_transaction(len(records) // 2, int(time) * HALF, writes)
        before = state
    result = [
        {"kind": "row", "key": event["key"], "value": event["value"], "position": int(event["updated"] * HALF)}
        if event["ev"] == "row"
        else {"kind": "watermark", "position": int(event["resolved"] * HALF)}
        for event in case["events"]
    ]
    spans = [event["partition"] for event in case["events"]]
    return records + stream_events(
        "feed", [{**each, "span": span} for each, span in zip(result, spans, strict=True)], len(records)
    )


def source_transaction(index: int, position: int, writes: list[tuple[Json, Json]]) -> tuple[Invoke, Complete]:
    mops = tuple(MicroOp("w", key, value) for key, value in writes)
    time_ns = 2 * index
    return (
        Invoke(index, time_ns, time_ns, 0, "txn", None, mops),
        Complete(index, time_ns + 1, "ok", None, mops, commit_ts=position),
    )


def stream_events(subscriber: str, evidence: list[dict[str, Any]], time_ns: int) -> list[Evidence]:
    return [StreamEvent(time_ns + number, subscriber, 0, number, **each) for number, each in enumerate(evidence)]


READERS: dict[str, Callable[[Case], list[Evidence]]] = {
    "elle-unit/cases.jsonl": jepsen_case,
    "elle-unit/unit_functions.jsonl": jepsen_case,
    "jepsen-unit/cases.jsonl": jepsen_case,
    "jepsen-kafka/cases.jsonl": jepsen_case,
    "etcd-watch/cases.jsonl": etcd_case,
    "crdb-cdc/cases.jsonl": crdb_case,
}
