"""What tests share."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from checkers.spark import SparkEngine, start_session, warm_up


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for the whole Spark part."""
    started = start_session(tmp_path_factory.mktemp("spark"))
    warm_up(started)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def spark(session: SparkSession) -> SparkEngine:
    return SparkEngine(session)
