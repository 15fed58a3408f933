"""The command of a scenario makes the same scenario again, wherever it is typed."""

import shlex
from pathlib import Path

import msgspec
import pytest

from harness.cli.options import run_options
from harness.core.errors import ScenarioError
from harness.run.running import prepare
from harness.scenario.command import command_anywhere, command_of
from harness.scenario.consent import installed
from harness.scenario.hand import at_hand
from harness.scenario.scenario import Scenario
from harness.scenario.sut import release, sut_of

SCENARIO = Scenario(
    cluster="tutorial",
    workload="list-append",
    seed=9,
    time_s=12.5,
    rate=60,
    clients=3,
    keys=4,
    nemesis=("crash", "pause"),
    bugs=("late-row",),
    sut={"name": "Shop", "version": "8.4.1"},
)


def test_the_options_of_the_command_are_the_scenario() -> None:
    words = shlex.split(command_of(SCENARIO))
    assert words[:2] == ["seamark", "run"]
    pairs = list(zip(words[2::2], words[3::2], strict=True))
    many = {name: [value for key, value in pairs if key == f"--{name}"] for name in ("bug", "option", "sut")}
    given: dict[str, object] = {key[2:].replace("-", "_"): value for key, value in pairs}
    given |= {name: values or None for name, values in many.items()}
    numbers = {"seed": int, "clients": int, "keys": int, "time": float, "rate": float}
    given |= {name: number(str(given[name])) for name, number in numbers.items()}
    options, _, _ = run_options(None, given)
    assert options.scenario(9) == SCENARIO


def test_a_cluster_in_a_file_is_named_by_the_hash_of_the_file() -> None:
    scenario = msgspec.structs.replace(SCENARIO, cluster="/somewhere/shop.py:Shop")
    command = command_of(scenario, code_sha256="ab" * 32)
    assert "--cluster YOUR_FILE.py:Shop" in command
    assert command.endswith("# its sha256 begins with abababababab")
    assert "/somewhere" not in command
    here = at_hand(command, ["/other/shop.py:Cart", "/it's/shop.py:Shop"])
    assert here == command.partition("  #")[0].replace("YOUR_FILE.py:Shop", "'/it'\"'\"'s/shop.py:Shop'")
    assert at_hand(command, ["/other/shop.py:Cart"]) == command


def test_a_run_whose_plan_was_given_has_no_such_command(tmp_path: Path) -> None:
    _, drawn = prepare(SCENARIO, installed("tutorial"), tmp_path)
    assert command_anywhere(drawn) == command_of(SCENARIO)
    _, given = prepare(SCENARIO, installed("tutorial"), tmp_path, drawn.plan)
    assert command_anywhere(given) is None


def test_a_release_is_named_by_its_parts() -> None:
    assert release(sut_of(["name=Shop", "version=8.4.1", "commit=1f3a"])) == "Shop 8.4.1, commit 1f3a"
    assert release({}) == ""
    for text in ("version", "version=", "verison=8"):
        with pytest.raises(ScenarioError):
            sut_of([text])
