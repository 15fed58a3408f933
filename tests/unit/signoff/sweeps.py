"""Constructed sweeps: what `seamark sweep` would have written, with chosen numbers."""

from itertools import count

import msgspec

from harness.campaign.document import (
    Numbers,
    Sweep,
    SweepCell,
    SweepConfig,
    SweepFault,
    SweepFinding,
    SweepPromise,
)

TORN = "59f48400aa5b8fbf"
_NUMBERS = count()


def cell(**changed: object) -> SweepCell:
    """A cell of 100 passing runs."""
    return msgspec.structs.replace(
        SweepCell(
            cluster="ndb",
            workload="list-append",
            faults="usual",
            runtime="sim",
            planned=100,
            runs=100,
            verdict="valid",
            reason="100 runs",
            counts={"valid": 90, "vacuous": 10},
            operations={"ok": 90_000, "fail": 9_000, "info": 1_000},
            hours=0.5,
            numbers=Numbers(recovery_s_median=0.4, recovery_s_worst=2.0, unknown_share=0.01, ok_per_s=50.0),
        ),
        **changed,
    )


def fault(kind: str = "partition", **changed: object) -> SweepFault:
    """A kind that took effect 200 times."""
    known = {"planned": 220, "begun": 210, "effective": 200, "met": 4_000, "is_exercised": True} | changed
    return msgspec.convert({"cluster": "ndb", "kind": kind} | known, SweepFault)


def finding(fingerprint: str = TORN, runs: int = 3, judged: int = 100, **changed: object) -> SweepFinding:
    """A torn unit in some runs."""
    known = {"anomaly": "torn-unit", "promise": "NDB-G8", "sentence": "Half of it arrived.", "cluster": "ndb"} | changed
    times = {"first_seen": "2026-11-20T00:00:00Z", "last_seen": "2026-11-22T00:00:00Z", "first_seed": 7}
    counts = {"count": runs, "runs": runs, "judged": judged, "rate": runs / judged, "checker": "streams"}
    return msgspec.convert({"fingerprint": fingerprint} | known | times | counts, SweepFinding)


def promise(name: str = "NDB-G8", **changed: object) -> SweepPromise:
    """A promise that held in all runs."""
    known = {
        "verdict": "holds",
        "witnesses": 900,
        "counts": {"holds": 100},
        "text": "Whole or not.",
        "source": "a page",
    }
    return msgspec.convert({"cluster": "ndb", "id": name} | known | changed, SweepPromise)


def sweep(*findings: SweepFinding, **changed: object) -> Sweep:
    """A sweep of one cell, two kinds of fault and one promise."""
    verdict = "invalid" if any(each.promise for each in findings) else "valid"
    made = Sweep(
        name="nightly",
        verdict=verdict,
        exit_code=int(verdict == "invalid"),
        reason="100 runs",
        started_utc="2026-11-22T00:00:00Z",
        finished_utc="2026-11-22T01:00:00Z",
        versions={"seamark": "0.1.0", "ndb": "8.0"},
        config=SweepConfig(path="nightly.toml", text="", sha256="c0"),
        planned=100,
        runs=100,
        min_runs=100,
        counts={"valid": 90, "vacuous": 10},
        operations={"ok": 90_000},
        hours=0.5,
        seconds=60.0,
        history_sha256=f"{next(_NUMBERS):064x}",
        cells=(cell(),),
        findings=findings,
        promises=(promise(),),
        faults=(fault(), fault("crash")),
    )
    return msgspec.structs.replace(made, **changed)
