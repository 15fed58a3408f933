from pathlib import Path

import pytest

from harness.record.formats.parquet import parquet


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of small histories need not survive the machine, and syncing them takes most of the time."""

    def forgotten(path: Path) -> None:
        assert path.exists()

    monkeypatch.setattr(parquet, "sync_folder", forgotten)
