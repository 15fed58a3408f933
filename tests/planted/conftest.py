"""The runs of a module's planted bugs."""

import pytest

from tests.planted.schedules import Runs


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The runs of the bugs of that module's CLUSTER."""
    return Runs(tmp_path_factory.mktemp("planted"), request.module.CLUSTER)
