from pathlib import Path

import pytest

HISTORIES = Path(__file__).resolve().parents[5] / "shared" / "histories"


@pytest.fixture
def stored() -> Path:
    """Histories of other projects, which stay outside of the repo."""
    if not HISTORIES.is_dir():
        pytest.skip(f"the stored histories are not here ({HISTORIES})")
    return HISTORIES
