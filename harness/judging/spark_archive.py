"""Builds the archive of Java classes that halves Spark's start time (checkers/engine/spark_classes.py).

Run: python -m harness.judging.spark_archive.
"""

from checkers.engine.datasets import Engine
from checkers.engine.spark_classes import write_archive
from checkers.history.transactions import Append, Operation, Read, to_transactions
from checkers.transactions.check import check_sources
from harness.core.verdict import Judgement


def small_check(engine: Engine) -> Judgement:
    """The judgement on two transactions: Spark loads all classes for it that a large check needs."""
    stale = [Operation(0, 0, 0, 1, (Append(0, 1),)), Operation(1, 0, 0, 2, (Read(0, ()),))]
    return check_sources([to_transactions(stale[:1]), to_transactions(stale[1:])], engine)


if __name__ == "__main__":
    print(write_archive(small_check) or "no archive: Spark will start without it")  # noqa: T201  A command.
