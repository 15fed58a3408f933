"""The cases of etcd and CockroachDB as their promises have them, for verdicts.

What an event says beside its value is an event of a key of its own: that a put created its key, what was there before.
The source has the same of each write, so a false word is a wrong value.

A watch of etcd shows its keys in one order, and a response is whole: so the end of a response says, like a progress
notification, that nothing at or below its last revision is to follow. A watch from now on began with what came first.
"""

from typing import Any

import msgspec

from harness.core.promises import StreamContract
from harness.core.record import Evidence, Json
from tests.corpus.cases import HALF, Case, source_transaction, stream_events

GONE = "(deleted)"
NOTHING = "(none)"
ETCD = StreamContract(
    closed="<=",
    cut="position",
    position="revision",
    order_key="global",
    delivery="exactly-once",
    unit_rows="final",
    identity="position+key",
    wm_scope="session",
)
CRDB = StreamContract(
    closed="<",
    cut="position",
    position="commit-timestamp",
    order_key="key",
    delivery="at-least-once",
    replay="session",
    atomic_unit="none",
    unit_rows="final",
    identity="position+key",
    wm_scope="partition",
)
UNORDERED = StreamContract(
    closed="<=",
    cut="position",
    position="commit-timestamp",
    order_key="none",
    delivery="at-least-once",
    replay="session",
    atomic_unit="none",
    unit_rows="final",
    identity="position+key",
    wm_scope="subscriber",
)
# What is at a resolved timestamp may still come; a fingerprint of the table is taken with it.
CONTRACTS = {"order": CRDB, "before_after": msgspec.structs.replace(UNORDERED, closed="<"), "fingerprint": UNORDERED}
Told = dict[str, Any]


# etcd


def etcd_records(case: Case) -> list[Evidence]:
    """The transactions that were persisted, from revision 2 on, and what each watch was told."""
    shown = {
        (event["key"], event["rev"])
        for watch in case["watches"]
        for response in watch["responses"]
        for event in response["events"]
        if event.get("prev")
    }
    records: list[Evidence] = []
    state: dict[str, Told] = {}
    effective = [[step for step in txn if not step.get("lease")] for txn in case["persisted_txns"]]
    for revision, txn in enumerate(filter(None, effective), start=2):
        writes: list[tuple[Json, Json]] = []
        for step in txn:
            key, value = step["put"] if "put" in step else (step["delete"], None)
            before = state.pop(key, None)
            if (key, revision) in shown:
                writes.append((["before", key], before))
            if value is not None:
                writes.append((["created", key], before is None))
                version = 1 if before is None else before["version"] + 1
                state[key] = {"value": value, "mod_rev": revision, "version": version}
            writes.append((key, GONE if value is None else value))
        records += source_transaction(len(records) // 2, revision, writes)
    keys = sorted({key for txn in effective for step in txn for key in [(step.get("put") or [step.get("delete")])[0]]})
    for number, watch in enumerate(case["watches"]):
        evidence = _opens(watch, keys)
        for response in watch["responses"]:
            evidence += _response(
                response, max((each["position"] or 0 for each in evidence if each["kind"] == "row"), default=0)
            )
        records += stream_events(f"{watch['client']}.{number}", evidence, len(records))
    return records


def _opens(watch: Told, keys: list[str]) -> list[Told]:
    """What the watch asked for: everything, or each of its keys; and from where on."""
    request = watch["request"]
    first = next((each for each in watch["responses"] if each["events"] or each["is_progress_notify"]), None)
    start = request["revision"] - 1 if request["revision"] else None
    if start is None and first is not None:
        start = first["revision"] if first["is_progress_notify"] else min(e["rev"] for e in first["events"]) - 1
    if request["prefix"] and not request["key"]:
        return [{"kind": "open", "position": start}]
    asked = [key for key in keys if request["prefix"] and key.startswith(request["key"])] or [request["key"]]
    opens: list[Told] = []
    for key in asked:
        opens += [{"kind": "open", "position": start, "key": name} for name in (key, ["created", key], ["before", key])]
    return opens


def _response(response: Told, reached: int) -> list[Told]:
    """What one response says; `reached` is the highest revision before it."""
    evidence: list[Told] = []
    for event in response["events"]:
        at = {"kind": "row", "position": event["rev"]}
        evidence.append(at | {"key": event["key"], "value": GONE if event["type"] == "delete" else event["value"]})
        if event["type"] == "put":
            evidence.append(at | {"key": ["created", event["key"]], "value": event["is_create"]})
        if event.get("prev"):
            evidence.append(at | {"key": ["before", event["key"]], "value": event["prev"]})
    if response["events"]:
        evidence.append({"kind": "watermark", "position": max(reached, *(e["rev"] for e in response["events"]))})
    if response["is_progress_notify"]:
        evidence.append({"kind": "watermark", "position": response["revision"]})
    return [*evidence, *([{"kind": "error", "value": response["error"]}] if response["error"] else [])]


# CockroachDB


def crdb_records(case: Case) -> list[Evidence]:
    """The states of the table as transactions that lead from one to the next, and the feed's events."""
    records: list[Evidence] = []
    before: dict[str, int] = {}
    tables = case.get("source_table_at", {})
    for time, state in sorted(tables.items(), key=lambda each: int(each[0])):
        writes: list[tuple[Json, Json]] = []
        if case["validator"] == "before_after" and time == "0":  # A row that says that nothing is there, is right.
            writes = [([int(key)], GONE) for key in sorted({key for each in tables.values() for key in each})]
        for key in sorted({*before, *state}):
            if before.get(key) != state.get(key):
                writes.append(([int(key)], _image(key, state, GONE)))
                if case["validator"] == "before_after":
                    writes.append((["before", int(key)], _image(key, before, NOTHING)))
        if writes:
            records += source_transaction(len(records) // 2, int(time) * HALF, writes)
        before = state
    return records + stream_events("feed", _feed(case), len(records))


def _image(key: str, state: dict[str, int], otherwise: str) -> Json:
    return {"k": int(key), "v": state[key]} if key in state else otherwise


def _feed(case: Case) -> list[Told]:
    match case["validator"]:
        case "order":
            result = [
                _row(each) | {"value": each["value"]} if each["ev"] == "row" else _mark(each) for each in case["events"]
            ]
            spans = [each["partition"] for each in case["events"]]
            return [
                {"kind": "open", "position": -1},
                *(one | {"span": span} for one, span in zip(result, spans, strict=True)),
            ]
        case "before_after":
            return [{"kind": "open", "position": -1}, *_with_images(case)]
        case _:
            return _fingerprinted(case)


def _row(event: Told) -> Told:
    return {"kind": "row", "key": event["key"], "position": int(event["updated"] * HALF)}


def _mark(event: Told) -> Told:
    return {"kind": "watermark", "position": int(event["resolved"] * HALF)}


def _with_images(case: Case) -> list[Told]:
    """Each row with its image before; until a partition is first resolved, one that is missing says nothing."""
    evidence: list[Told] = []
    for event in case["events"]:
        if event["ev"] == "resolved":
            evidence.append(_mark(event))
            continue
        evidence.append(_row(event) | {"value": event["value"].get("after") or GONE})
        image = event["value"].get("before")
        if image is not None or any(each["kind"] == "watermark" for each in evidence):
            evidence.append(_row(event) | {"key": ["before", *event["key"]], "value": image or NOTHING})
    return evidence


def _fingerprinted(case: Case) -> list[Told]:
    """The rows, and how far all partitions are resolved. Rows of one moment are a scan, with which the feed begins."""
    moments = {event["updated"] for event in case["events"] if event["ev"] == "row"}
    is_scan = len(moments) == 1 and min(moments) > 1
    evidence: list[Told] = [{"kind": "open", "position": int(min(moments) * HALF) - 1 if is_scan else -1}]
    reached = dict.fromkeys(case["partitions"], -1)
    for event in case["events"]:
        if event["ev"] == "row":
            evidence.append(_row(event) | {"value": event["value"].get("after") or GONE})
            continue
        reached[event["partition"]] = _mark(event)["position"]
        if min(reached.values()) >= 0:
            evidence.append({"kind": "watermark", "position": min(reached.values())})
    return evidence
