"""What tests share."""

from collections.abc import Iterator

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tests
from checkers.engine.spark import SparkEngine, start_session, warm_up
from checkers.transactions import check as transactions
from checkers.watermarks import check as watermarks


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for the whole Spark part. Its workers may stand in any folder: our kernels travel by value."""
    cloudpickle.register_pickle_by_value(tests)
    started = start_session(tmp_path_factory.mktemp("spark"), loaded=(transactions, watermarks))
    warm_up(started)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def spark(session: SparkSession) -> SparkEngine:
    return SparkEngine(session)
