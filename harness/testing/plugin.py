"""The pytest plugin: one test for each seed of a function that `seamark.test` marks.

Every pytest session in an environment with Seamark loads this file, so it imports nothing heavy.
"""

from pathlib import Path
from typing import Protocol

import pytest

from harness.testing.names import FIXTURE, MARK, Order


class Tested(Protocol):
    """The attribute that `seamark.test` sets on a function."""

    seed: int
    count: int


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("seamark", "runs of Seamark as tests")
    group.addoption("--seamark-seed", type=int, metavar="N", help="the first seed, instead of each test's own")
    group.addoption("--seamark-count", type=int, metavar="N", help="seeds per test, instead of each test's own")
    group.addoption("--seamark-store", default="store", metavar="FOLDER", help="where failed runs are kept (store)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each seed of a marked function."""
    tested: Tested | None = getattr(metafunc.function, MARK, None)
    if tested is None:
        return
    seed, count = metafunc.config.getoption("--seamark-seed"), metafunc.config.getoption("--seamark-count")
    first = tested.seed if seed is None else seed
    seeds = range(first, first + (tested.count if count is None else count))
    if first < 0 or not seeds:
        raise pytest.UsageError("--seamark-seed must be 0 or more, and --seamark-count 1 or more")
    metafunc.parametrize(FIXTURE, seeds, indirect=True, ids=[f"seed-{number}" for number in seeds])


@pytest.fixture
def seamark_order(request: pytest.FixtureRequest) -> Order:
    """The run that this test must make. Only a function marked with @seamark.test has one."""
    return Order(request.param, Path(request.config.getoption("--seamark-store")))
