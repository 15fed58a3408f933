"""Fixtures that tests of registers share."""

from pathlib import Path

import pytest

from harness.record.formats.parquet import parquet


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small histories need not survive the machine."""
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)
