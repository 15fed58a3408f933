"""Run files of a test."""

from collections.abc import Sequence
from typing import Literal

from clusters.tutorial.promises import PROMISES, STREAM
from harness.core.promises import Promise
from harness.record.store import RunFile
from nemesis.plan import Plan

SECOND = 1_000_000_000


def run_file(runtime: Literal["sim", "docker"] = "sim", promises: Sequence[Promise] = PROMISES) -> RunFile:
    return RunFile(
        versions={},
        cluster="tutorial",
        runtime=runtime,
        seed=1,
        options={},
        bugs=(),
        parameters={},
        workload="list-append",
        checks=(),
        types=(),
        plan=Plan(steps=()),
        promises=tuple(promises),
        stream=STREAM,
        subscribers=("s1",),
        goals=(),
        settle_ns=SECOND,
    )
