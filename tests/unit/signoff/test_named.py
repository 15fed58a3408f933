"""Sweeps by name: of the sweep, of its release, or the latest."""

from datetime import date
from pathlib import Path

import pytest

from harness.core.errors import ScenarioError
from harness.signoff.decision import Inputs, sign_off
from harness.signoff.markdown import signoff_markdown
from harness.signoff.named import sweep_named
from tests.unit.campaign.made import made
from tests.unit.campaign.reports import report
from tests.unit.signoff.folders import RED

TODAY = date(2026, 11, 23)


def declared(version: str) -> dict[str, str]:
    return {"sut.name": "Shop", "sut.version": version}


def test_a_sweep_is_named_by_its_release_its_own_name_or_as_the_latest(tmp_path: Path) -> None:
    old, new = (made(tmp_path, each, **declared(version)) for each, version in ((report(), "8.4.0"), (RED, "8.4.1")))
    assert old != new
    first, last = sorted((old, new))
    for name, folder in (("8.4.0", old), ("Shop 8.4.1", new), ("latest", last), ("nightly", last), (str(first), first)):
        assert sweep_named(Path(name), tmp_path) == folder, name
    (last / "sweep.json").write_text("{")
    assert sweep_named(Path("latest"), tmp_path) == first, "a damaged sweep has no name"
    for name in ("8.4", "8.4.2", "Shop/8.4.0"):
        with pytest.raises(ScenarioError, match=r"no sweep of .* that has ended is called so; it has Shop 8\.4\."):
            sweep_named(Path(name), tmp_path)


def test_the_document_is_about_the_release_and_its_reasons_are_words(tmp_path: Path) -> None:
    before = made(tmp_path / "a", report(), **declared("8.4.0"))
    after = made(tmp_path / "b", RED, **declared("8.4.1"))
    found = sign_off(Inputs(baseline=before, candidate=after), TODAY)
    assert signoff_markdown(found, "0" * 64).startswith("# NO-GO: Shop 8.4.1\n")
    assert found.findings[0].fingerprint not in " ".join(found.reasons)
