"""The code of docs/your-own-system.md, and what `seamark new` writes, put Debian's Redis under test in containers."""

import re
import subprocess
import sys
from pathlib import Path

import docker
import msgspec
import pytest

from harness.cli.new import template
from harness.core.record import Json
from nemesis.plan import Plan, Step
from tests.system.harnesses import MS, seamark

pytestmark = pytest.mark.docker

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "your-own-system.md"
BOTH_WAYS = ("client>n1", "n1>client")


def step(fault: str, package: str, start_ms: int, end_ms: int, *targets: str, **args: int | str) -> Step:
    return Step(
        fault=fault, package=package, at_ns=start_ms * MS, until_ns=end_ms * MS, targets=targets or ("n1",), args=args
    )


KILL = Plan(steps=(step("crash", "crash", 2_000, 2_800, disk="kept"),))
ALL = Plan(
    steps=(
        step("crash", "crash", 800, 1_500, disk="kept"),
        step("pause", "pause", 5_000, 5_600),
        step("cut", "partition", 6_600, 7_200, *BOTH_WAYS),
    )
)


@pytest.fixture
def page(engine: docker.DockerClient, tmp_path: Path) -> Path:
    """The file that the page tells to write, in a folder of its own."""
    code, *_ = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(code.splitlines()) <= 120
    path = tmp_path / "redis_lists.py"
    path.write_text(code, encoding="utf-8")
    return path


def judged(folder: Path, plan: Plan, seconds: int, *options: str) -> tuple[int, dict[str, Json]]:
    """The exit code and the report of so many seconds under that plan."""
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    shape = (
        "--time",
        f"{seconds}",
        "--rate",
        "60",
        "--seed",
        "5",
        "--plan",
        "plan.json",
        "--engine",
        "local",
        "--json",
    )
    code, out, err = seamark(folder, "run", "--runtime", "docker", *options, *shape)
    assert code in (0, 1), err + out[:2_000]
    return code, msgspec.json.decode(out, type=dict[str, Json])


def test_the_system_on_the_page_keeps_its_promises_when_it_is_killed_paused_and_cut_off(page: Path) -> None:
    code, report = judged(page.parent, ALL, 8, "--cluster", "redis_lists.py:cluster")
    assert (code, report["findings"]) == (0, [])


def test_lost_writes_are_found_and_called_so_where_nothing_is_written_before_it_is_acknowledged(page: Path) -> None:
    code, report = judged(page.parent, KILL, 5, "--cluster", "redis_lists.py:cluster", "--bug", "snapshots")
    assert code == 1
    findings = msgspec.convert(report["findings"], list[dict[str, Json]])
    assert "stale-acknowledged" in [finding["anomaly"] for finding in findings]


def test_what_seamark_new_writes_runs_as_it_stands(engine: docker.DockerClient, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(template("shop"), encoding="utf-8")
    code, report = judged(tmp_path, KILL, 5, "--cluster", "shop.py:shop")
    assert (code, report["findings"]) == (0, [])


def test_the_code_on_the_page_passes_the_type_checker(page: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
