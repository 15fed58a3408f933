"""The command that carries a scenario out again on any machine with the same installation."""

import msgspec

from harness.core.command import seamark
from harness.record.store import RunFile
from harness.scenario.consent import place_of
from harness.scenario.hand import stand_in
from harness.scenario.scenario import Scenario
from nemesis.styles.styles import SWARM

DIGITS = 12  # Of the hash of a cluster's file.


def command_of(scenario: Scenario, *, code_sha256: str | None = None) -> str:
    """The `seamark run` with the options of that scenario, of which a drawn plan is one result.

    A cluster in a file has another path on each machine, so the command names it YOUR_FILE.py, with the hash of the
    file in a comment. What only a scenario file can hold (a script, parameters) is left out.
    """
    usual, place = Scenario(), place_of(scenario.cluster)
    given = {
        "--cluster": stand_in(scenario.cluster),
        "--runtime": scenario.runtime if scenario.runtime != usual.runtime else None,
        "--workload": scenario.workload,
        "--seed": scenario.seed,
        "--time": f"{scenario.time_s:g}",
        "--rate": f"{scenario.rate:g}" if scenario.rate != usual.rate else None,
        "--clients": scenario.clients if scenario.clients != usual.clients else None,
        "--timeout-ms": scenario.timeout_ms if scenario.timeout_ms != usual.timeout_ms else None,
        "--keys": scenario.keys,
        "--nemesis": None if scenario.nemesis is None else ",".join(scenario.nemesis) or "none",
        "--style": scenario.style if scenario.style != SWARM else None,
    }
    words = [word for name, value in given.items() if value is not None for word in (name, value)]
    words += [word for bug in scenario.bugs for word in ("--bug", bug)]
    words += [word for name, value in scenario.options.items() for word in ("--option", f"{name}={value}")]
    words += [word for name, value in scenario.sut.items() for word in ("--sut", f"{name}={value}")]
    comment = f"  # its sha256 begins with {code_sha256[:DIGITS]}" if place is not None and code_sha256 else ""
    return seamark("run", *words) + comment


def command_anywhere(run_file: RunFile) -> str | None:
    """The command that makes that run again without its folder; None if it needs files or containers of its own.

    A simulated run is the same, byte for byte; a run in containers has the same plan and load.
    """
    try:
        scenario = msgspec.convert(run_file.options, Scenario)
    except msgspec.ValidationError:
        return None
    if run_file.is_plan_given or scenario.script is not None or scenario.parameters or scenario.attach is not None:
        return None
    return command_of(scenario, code_sha256=run_file.code_sha256)
