"""Prints the microseconds that the default workload takes for each operation. Run: python -m tests.bench.generators."""

import time

from harness.core.generators.generator import Context, Generator, Planned
from harness.core.record import Complete, Invoke
from harness.scenario.workloads import WORKLOADS, WorkloadOptions

SECOND = 1_000_000_000


def main() -> None:
    """One question and two updates for each operation of a minute's load."""
    options = WorkloadOptions(seed=1, rate_per_s=100, duration_ns=60 * SECOND, threads=5)
    generator: Generator = WORKLOADS["list-append"](options).load
    context = Context(0, (0, 1, 2, 3, 4), (0, 1, 2, 3, 4))
    count, started = 0, time.perf_counter()
    while (answer := generator.op(context)) is not None:
        planned, generator = answer
        assert isinstance(planned, Planned)
        invoke = Invoke(count, 0, planned.time_ns, 0, planned.f, planned.value, planned.mops)
        generator = generator.update(context, invoke).update(context, Complete(count, 0, "ok"))
        count += 1
    took_s = time.perf_counter() - started
    print(f"list-append: {took_s / count * 1e6:.1f} us for each of {count} operations")


if __name__ == "__main__":
    main()
