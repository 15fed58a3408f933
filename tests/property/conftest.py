"""What tests share."""

from collections.abc import Iterator

import pytest
from pyspark import cloudpickle

import tests
from checkers.engine.spark import Session, SparkEngine, start_session, warm_up
from harness.judging.engines import WITH_KERNELS


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One session for the whole Spark part. Its workers may stand in any folder: our kernels travel by value."""
    cloudpickle.register_pickle_by_value(tests)
    started = start_session(tmp_path_factory.mktemp("spark"), loaded=WITH_KERNELS)
    warm_up(started)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def spark(session: Session) -> SparkEngine:
    return SparkEngine(session)
