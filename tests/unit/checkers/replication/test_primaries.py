"""Several primaries: convergence, losses on record, loops, and conflicts under the declared rule."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import seamark
from checkers.engine.protocol import Context
from checkers.replication import conflicts, convergence
from checkers.replication.sites import Entry, Rejected, Rule, Sites
from harness.core.errors import HistoryError
from harness.core.record import State
from harness.record.formats.parquet.parquet import write_history
from tests.amount import count
from tests.oracles import primaries
from tests.worlds.run_cases import ENGINE
from tests.worlds.two_sites import TwoSites, told

RULES = {name: (name, "A", 1) for name in ("epoch", "epoch-trans", "max", "max-delete-win", "old")} | {
    "rounded": ("epoch", "A", 4)
}
Case = tuple[str | None, str, str, str, list[str]]
# The rule; the logs of A and B as NAME@EPOCH:KEY=VALUE,... with the origin as the name's first letter and -KEY for a
# key that was read; the exceptions of A; what is found. The states are what the logs give.
CASES: dict[str, Case] = {
    "one site writes": ("epoch", "a1@1:x=1", "a1@1:x=1", "", []),
    "a change back after the first was seen": ("epoch", "a1@1:x=1 b1@5:x=2", "a1@1:x=1 b1@2:x=2", "", []),
    "A wins, and realigns B": ("epoch", "a1@1:x=1 b1@5: a2@5:x=1", "b1@1:x=2 a1@3:x=1 a2@4:x=1", "b1x", []),
    "B was not realigned": ("epoch", "a1@1:x=1 b1@5:", "a1@1:x=1 b1@1:x=2", "b1x", ["site-divergence"]),
    "a conflict was missed": ("epoch", "a1@1:x=1 b1@5:x=2", "b1@1:x=2 a1@2:x=2", "", ["missed-conflict"]),
    "the same without a rule": (None, "a1@1:x=1 b1@5:x=2", "b1@1:x=2 a1@2:x=2", "", []),
    "A never applied it": ("epoch", "a1@1:y=1", "b1@1:x=2 a1@2:y=1", "b9x", ["site-divergence", "unrecorded-loss"]),
    "merged in its epoch": ("epoch", "b2@1:x=3", "b1@1:x=2 b2@1:x=3", "b9y", []),
    "not merged, as the epoch is another": ("epoch", "b2@1:x=3", "b1@1:x=2 b2@2:x=3", "b9y", ["unrecorded-loss"]),
    "rejected over the change of its own site": (
        "epoch",
        "b1@1:x=1 b2@2: a1@2:x=1",
        "b1@1:x=1 b2@2:x=2 a1@4:x=1",
        "b2x",
        ["false-rejection"],
    ),
    "rejected though it had seen": (
        "epoch",
        "a1@1:x=1 b1@2: a2@2:x=1",
        "a1@1:x=1 b1@2:x=2 a2@3:x=1",
        "b1x",
        ["false-rejection"],
    ),
    "rejected, as it came in the epoch of what it had seen": (
        "epoch",
        "a1@1:x=1 b1@2: a2@2:x=1",
        "a1@2:x=1 b1@2:x=2 a2@3:x=1",
        "b1x",
        [],
    ),
    "rejected where nothing is": ("epoch", "b1@2: a1@2:x=", "b1@2:x=2 a1@3:x=", "b1x", []),
    "a loop": ("epoch", "a1@1:x=1 a1@3:x=1", "a1@2:x=1", "", ["own-change-applied"]),
    "half of a transaction": (
        "epoch-trans",
        "a1@1:x=1 b1@3:y=2 a2@4:x=1",
        "b1@1:x=2,y=2 a1@2:x=1 a2@5:x=1",
        "b1x",
        ["torn-rejection"],
    ),
    "half of it, where rows count": (
        "epoch",
        "a1@1:x=1 b1@3:y=2 a2@4:x=1",
        "b1@1:x=2,y=2 a1@2:x=1 a2@5:x=1",
        "b1x",
        [],
    ),
    "the whole of it": (
        "epoch-trans",
        "a0@0:y=0 a1@1:x=1 b1@3: a2@4:x=1,y=0",
        "a0@0:y=0 b1@1:x=2,y=2 a1@2:x=1 a2@5:x=1,y=0",
        "b1x b1y",
        [],
    ),
    "a dependant survives": (
        "epoch-trans",
        "a0@0:y=0 a1@1:x=1 b1@3: b2@3:y=3 a2@4:x=1",
        "a0@0:y=0 b1@1:x=2,y=2 b2@1:y=3 a1@2:x=1 a2@5:x=1",
        "b1x b1y",
        ["surviving-dependant"],
    ),
    "a dependant that only read survives": (
        "epoch-trans",
        "a1@1:x=1 b1@3: b2@3:z=3 a2@4:x=1",
        "b1@1:x=2 b2@1:-x,z=3 a1@2:x=1 a2@5:x=1",
        "b1x",
        ["surviving-dependant"],
    ),
    "rejected for a row that it read before it saw A's": (
        "epoch-trans",
        "a1@1:x=1 b1@3: a2@3:y=",
        "b1@1:-x,y=2 a1@2:x=1 a2@4:y=",
        "b1y",
        [],
    ),
    "rejected for a row that it read as A had it": (
        "epoch-trans",
        "a0@0:y=0 a1@1:x=1 b1@3: a2@3:y=0",
        "a0@0:y=0 a1@1:x=1 b1@2:-x,y=2 a2@4:y=0",
        "b1y",
        ["false-rejection"],
    ),
    "a dependant goes as well": (
        "epoch-trans",
        "a0@0:y=0 a1@1:x=1 b1@3: b2@3: a2@4:x=1,y=0",
        "a0@0:y=0 b1@1:x=2,y=2 b2@1:y=3 a1@2:x=1 a2@5:x=1,y=0",
        "b1x b1y b2y",
        [],
    ),
    "on top of the realigned row": (
        "epoch-trans",
        "a1@1:x=1 b1@3: a2@4:x=1 b2@9:x=3",
        "b1@1:x=2 a1@2:x=1 a2@5:x=1 b2@6:x=3",
        "b1x",
        [],
    ),
    "the greater one wins": ("max", "a1@1:x=5 b1@2:", "b1@1:x=2 a1@2:x=5", "b1x", []),
    "the smaller one wins": ("max", "a1@1:x=5 b1@2:x=2", "b1@1:x=2 a1@2:x=2", "", ["decreasing-maximum"]),
    "the equal one wins": ("max", "a1@1:x=5 b1@2:x=5", "b1@1:x=5 a1@2:", "", ["missed-conflict"]),
    "the greater one is rejected": (
        "max",
        "a1@1:x=5 b1@2:",
        "a1@1:x=5 b1@2:x=6",
        "b1x",
        ["false-rejection", "site-divergence"],
    ),
    "rejected in the window of what it had seen": (
        "rounded",
        "a1@1:x=1 b1@2: a2@2:x=1",
        "a1@1:x=1 b1@2:x=2 a2@3:x=1",
        "b1x",
        [],
    ),
    "smaller after a deletion": ("max", "a1@1:x=5 a2@2:x= b1@3:x=2", "b1@1:x=2 a1@2: a2@2:", "", []),
    "a deletion of an older row is applied": (
        "max",
        "a1@1:x=5 a2@2:x=6 b1@3:x=",
        "a1@1:x=5 b1@2:x= a2@3:",
        "",
        ["missed-conflict"],
    ),
    "a deletion that wins": ("max-delete-win", "a1@1:x=5 a2@2:x=6 b1@3:x=", "a1@1:x=5 b1@2:x= a2@3:", "", []),
    "the old value is there": ("old", "a1@1:x=5 b1@2:x=3", "a1@1:x=5 b1@2:x=3", "", []),
    "another value is there": ("old", "a1@1:x=5 a2@1:x=6 b1@2:x=3", "a1@1:x=5 b1@2:x=3 a2@3:", "", ["missed-conflict"]),
}


def log_of(text: str) -> list[Any]:
    """A log as the cases have it."""
    log = []
    for each in text.split():
        head, _, rest = each.partition(":")
        name, _, epoch = head.partition("@")
        cells = [cell for cell in rest.split(",") if "=" in cell]
        rows = {cell[0]: int(cell[2:]) if cell[2:] else None for cell in cells}
        log.append((name, name[0].upper(), int(epoch), rows, [cell[1:] for cell in rest.split(",") if cell[:1] == "-"]))
    return log


def world(case: Case) -> Any:
    rule, at_a, at_b, rejected, _ = case
    logs = {"A": log_of(at_a), "B": log_of(at_b)}
    exceptions = {"A": [(each[:2], each[2:]) for each in rejected.split()]} if rejected else {}
    states: dict[str, dict[str, Any]] = {site: {} for site in logs}
    for site, log in logs.items():
        for entry in log:
            states[site] |= entry[3]
    return logs, exceptions, states, None if rule is None else RULES[rule]


def sites(logs: Any, exceptions: Any, states: Any, rule: Any) -> Sites:
    """The same as values."""
    entries = {
        site: tuple(Entry(e[0], e[1], e[2], tuple(e[3].items()), tuple(e[4])) for e in log)
        for site, log in logs.items()
    }
    rejected = {site: tuple(Rejected(*row) for row in of) for site, of in exceptions.items()}
    return Sites(
        entries,
        rejected,
        states,
        {}
        if rule is None
        else {None: msgspec.convert({"rule": rule[0], "primary": rule[1], "rounding": rule[2]}, Rule)},
    )


def found_in(what: Sites) -> Counter[str]:
    both = (*convergence.judged(what), *conflicts.judged(what))
    return Counter(anomaly for anomaly, trouble in both if trouble is not None)


@pytest.mark.parametrize("case", CASES)
def test_what_two_primaries_show(case: str) -> None:
    expected = CASES[case][-1]
    shown = world(CASES[case])
    assert sorted(found_in(sites(*shown))) == expected
    assert sorted(primaries.anomalies(*shown)) == expected


def test_drawn_sites_are_judged_as_the_oracle_judges_them_and_correct_ones_are_clean() -> None:
    kinds: set[str] = set()
    for seed in range(count(60)):
        for slip in (0.0, 0.15):
            draw = Random(seed)
            rule = draw.choice(("epoch", "epoch-trans"))
            ran = TwoSites(draw, rule, slip).run(draw.randint(4, 25))
            shown = (ran.logs, ran.exceptions, ran.states(), (rule, "A", 1 + draw.randint(0, 1) * bool(slip)))
            found = set(found_in(sites(*shown)))
            assert found == primaries.anomalies(*shown), (seed, slip)
            assert slip or not found, (seed, found)
            kinds |= found
    assert {"missed-conflict", "site-divergence", "unrecorded-loss", "false-rejection"} <= kinds


def test_promises_without_a_rule_or_a_table_are_not_exercised(tmp_path: Path) -> None:
    logs, exceptions, states, rule = world(CASES["a dependant goes as well"])
    for name, records in (
        ("whole", told(logs, exceptions, states, rule)),
        ("no-rule", told(logs, exceptions, states, None)),
        ("no-table", told(logs, {}, states, None)),
    ):
        write_history(records, tmp_path / name)
    context = Context(engine=ENGINE)
    judged = {name: conflicts.check(tmp_path / name, context).witnesses for name in ("whole", "no-rule")}
    assert judged["whole"] == {
        "missed-conflict": 0,
        "false-rejection": 3,
        "torn-rejection": 1,
        "surviving-dependant": 1,
        "decreasing-maximum": 0,
    }
    assert set(judged["no-rule"].values()) == {0}
    losses = [
        convergence.check(tmp_path / name, context).witnesses["unrecorded-loss"] for name in ("whole", "no-table")
    ]
    assert losses[0] > 0
    assert losses[1] == 0


def test_a_state_of_another_form_is_refused_with_its_name(tmp_path: Path) -> None:
    entry = {"transaction": "b", "origin": "A", "epoch": 2, "rows": []}
    cases: list[tuple[str, str | None, Any, str]] = [
        ("site-log", "A", [["a", "A", 1]], "the site-log of A has another form"),
        (
            "site-log",
            "A",
            [entry, entry | {"transaction": "c", "epoch": 1}],
            "c in epoch 1 stands behind b in epoch 2",
        ),
        ("conflict-rule", None, {"rule": "newest"}, "the conflict-rule of None has another form: Invalid enum"),
        ("conflict-rule", None, {"rule": "epoch"}, "it needs a 'primary'"),
    ]
    for number, (kind, key, value, told_) in enumerate(cases):
        folder = tmp_path / str(number)
        write_history([State(9, "A", kind, key, value)], folder)
        with pytest.raises(HistoryError, match=told_):
            convergence.check(folder, Context(engine=ENGINE))


FORBIDS = [*convergence.ANOMALIES, *conflicts.ANOMALIES]
PROMISES = "".join(
    f'[[promise]]\nid = "P-{each}"\ntext = "t"\nsource = "s"\nforbids = ["{each}"]\n' for each in FORBIDS
)


def judged(folder: Path, records: list[Any]) -> Any:
    """The report of a file from elsewhere, with every anomaly of these checks forbidden by a promise of its own."""
    (folder / "own.toml").write_text(PROMISES, encoding="utf-8")
    (folder / "own.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
    return seamark.check(folder / "own.jsonl", promises=folder / "own.toml")


def own(x_at_b: list[int], rejected: list[Any]) -> list[Any]:
    """Clients append to lists x and y at two sites: 1 at A and 2 at B to x at the same time, and 3 at B to y."""
    records: list[Any] = []
    for index, (site, key, element) in enumerate((("A", "x", 1), ("B", "x", 2), ("B", "y", 3))):
        mops = [["append", key, element]]
        common = {"index": index, "mops": mops}
        records.append({"type": "invoke", "time_ns": index, "process": index, "f": "txn", **common})
        records.append({"type": "complete", "time_ns": 10 + index, "outcome": "ok", "node": site, **common})
    for site, kind, value in (
        ("A", "site-state", [["x", [1]], ["y", [3]]]),
        ("B", "site-state", [["x", x_at_b], ["y", [3]]]),
        ("A", "exceptions", rejected),
    ):
        records.append({"type": "state", "time_ns": 99, "node": site, "object": kind, "key": site, "value": value})
    return records


def test_a_history_of_two_primaries_from_elsewhere(tmp_path: Path) -> None:
    found = {}
    for name, x_at_b, rejected in (
        ("legal", [1], [[None, "x", 2]]),
        ("diverged", [1, 2], [[None, "x", 2]]),
        ("lost", [1], []),
    ):
        (tmp_path / name).mkdir()
        found[name] = judged(tmp_path / name, own(x_at_b, rejected))
    assert {name: [each.anomaly for each in report.findings] for name, report in found.items()} == {
        "legal": [],
        "diverged": ["site-divergence"],
        "lost": ["unrecorded-loss"],
    }
    assert found["diverged"].findings[0].sentence == "When all is at rest, x is [1] at A and [1, 2] at B."
    assert found["lost"].findings[0].sentence == (
        "T1 appended 2 to x at B; A does not have it in the end, and no exceptions table has it."
    )


def test_the_documented_sites_are_judged(tmp_path: Path) -> None:
    """In docs/history-format.md, A rejects a row of a transaction, and applies the other one."""
    text = (Path(__file__).parents[4] / "docs/history-format.md").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.split("## Several primaries")[1].splitlines() if line[:1] == "{"]
    assert [each.anomaly for each in judged(tmp_path, lines).findings] == ["torn-rejection"]
