"""Measures what strict serializability costs in the model of Materialize when the catalog is slow to reach.

    python -m tests.bench.waits [docs/findings/materialize-waits.svg]

Each message between coordinators and the catalog takes so much longer; nothing else is wrong. Prints, for each delay,
the median and the 99th percentile of the time that operations took, and draws the medians if a file is named.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from clusters.materialize.coordinator.sequencing import SERIALIZABLE
from harness.core.record import Complete, Invoke
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan, Step
from tests.scenario.simulated import Simulated

MS, SECOND = 1_000_000, 1_000_000_000
DELAYS_MS = (0, 10, 20, 40, 60)
LENGTH_S, SEED = 10, 3
LINKS = tuple(f"{one}>{other}" for each in ("c1", "c2") for one, other in ((each, "k1"), ("k1", each)))
ROWS = ("strict reads", "serializable reads", "inserts", "reads with a write")
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73")
WIDTH, HEIGHT, LEFT, TOP = 640, 300, 60, 20


def waits(delay_ms: int, isolation: str) -> Iterator[tuple[str, int]]:
    """The kind of each operation that succeeded after the first second, and its time in ns."""
    args: dict[str, int | str] = {"latency_ns": delay_ms * MS}
    step = Step(fault="delay", package="slow-link", at_ns=0, until_ns=LENGTH_S * SECOND, targets=LINKS, args=args)
    scenario = Scenario(
        cluster="materialize",
        seed=SEED,
        time_s=LENGTH_S,
        workload="tables",
        rate=40,
        options={"isolation": isolation},
        parameters={"deploy_ms": 6000, "suspect_ms": 500},
    )
    evidence = Simulated(scenario, Plan(steps=(step,) if delay_ms else ())).evidence
    asked = {record.index: record for record in evidence if isinstance(record, Invoke)}
    for end in evidence:
        if isinstance(end, Complete) and end.outcome == "ok" and SECOND < end.time_ns < LENGTH_S * SECOND:
            kind = kind_of(asked[end.index], isolation)
            if kind:
                yield kind, end.time_ns - asked[end.index].time_ns


def kind_of(asked: Invoke, isolation: str) -> str | None:
    """The row of an operation; None for one that is not shown."""
    kinds = {mop.f for mop in asked.mops or ()}
    if not kinds:
        return None
    if isolation == SERIALIZABLE:
        return ROWS[1] if kinds == {"r"} else None
    if len(kinds) > 1:
        return ROWS[3]
    return ROWS[0] if kinds == {"r"} else ROWS[2]


def measured() -> dict[str, list[tuple[float, float]]]:
    """For each row the median and 99th percentile in ms, by delay."""
    found: dict[str, list[tuple[float, float]]] = {row: [] for row in ROWS}
    for delay_ms in DELAYS_MS:
        times: dict[str, list[int]] = {row: [] for row in ROWS}
        for isolation in ("strict-serializable", SERIALIZABLE):
            for row, took_ns in waits(delay_ms, isolation):
                times[row].append(took_ns)
        for row, each in times.items():
            each.sort()
            found[row].append((each[len(each) // 2] / MS, each[len(each) * 99 // 100] / MS))
    return found


def picture(found: dict[str, list[tuple[float, float]]]) -> str:
    """The medians as an SVG."""
    top_ms = max(median for each in found.values() for median, _ in each) * 1.1
    wide, high = WIDTH - LEFT - 170, HEIGHT - TOP - 50

    def place(delay_ms: float, took_ms: float) -> tuple[float, float]:
        return LEFT + wide * delay_ms / DELAYS_MS[-1], TOP + high * (1 - took_ms / top_ms)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"',
        '  font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{LEFT} {TOP}V{TOP + high}H{LEFT + wide}" fill="none" stroke="#888"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 8}">extra delay of each message to and from the catalog, ms</text>',
        f'<text x="8" y="{TOP - 6}">median time, ms</text>',
    ]
    for delay_ms in DELAYS_MS:
        x, y = place(delay_ms, 0)
        lines.append(f'<text x="{x:.0f}" y="{y + 16:.0f}" text-anchor="middle">{delay_ms}</text>')
    for part in (0.25, 0.5, 0.75, 1):
        x, y = place(0, top_ms * part)
        lines.append(f'<text x="{x - 6:.0f}" y="{y + 4:.0f}" text-anchor="end">{top_ms * part:.0f}</text>')
    for (row, each), colour in zip(found.items(), COLOURS, strict=True):
        points = [place(delay_ms, median) for delay_ms, (median, _) in zip(DELAYS_MS, each, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = points[-1]
        lines.append(f'<text x="{x + 8:.0f}" y="{y + 4:.0f}" fill="{colour}">{row}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    """Print the table, and write the picture."""
    found = measured()
    print("| delay |", " | ".join(ROWS), "|")
    for number, delay_ms in enumerate(DELAYS_MS):
        cells = " | ".join(f"{each[number][0]:.0f} ({each[number][1]:.0f})" for each in found.values())
        print(f"| {delay_ms} ms | {cells} |")
    for name in sys.argv[1:]:
        Path(name).write_text(picture(found), encoding="utf-8")


if __name__ == "__main__":
    main()
