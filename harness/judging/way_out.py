"""What to change about a run that tested too little, with the command that does it."""

import msgspec

from harness.record.store import RunFile
from harness.report.model import WayOut
from harness.scenario.command import command_anywhere
from harness.scenario.scenario import Scenario

LONGER = 4  # Times the load of the run.
SECONDS_MAX = 86_400.0  # The longest load of a run.
CHANGES = {
    "a": "Run longer, or at a higher rate",
    "b": "Run longer, or use another seed",
    "c": "Run longer, or use another workload",
    "e": "Run it again",
}


def way_out(run_file: RunFile, clause: str | None, advice: str | None = None) -> WayOut | None:
    """The change that lets a vacuous run test enough; None if the run was not vacuous.

    `advice` is the only change that helps a run whose promises no longer run could exercise.
    The command is None for a run whose plan, operations or containers were given: only their author can change them.
    """
    change = CHANGES.get(clause or "")
    if change is None:
        return None
    if clause == "c" and advice is not None:
        return WayOut(sentence=advice)
    if command_anywhere(run_file) is None:
        return WayOut(sentence=f"{change}, with a plan that reaches more operations.")
    again = _more(run_file, is_same=clause == "e", is_other_seed=clause == "b")
    return WayOut(sentence=f"{change}; a sweep adds up what many runs tested.", command=command_anywhere(again))


def _more(run_file: RunFile, *, is_same: bool, is_other_seed: bool) -> RunFile:
    """The run with a longer load and, if requested, the next seed."""
    scenario = msgspec.convert(run_file.options, Scenario)
    if is_same:
        return run_file
    scenario = msgspec.structs.replace(
        scenario, seed=scenario.seed + is_other_seed, time_s=min(LONGER * scenario.time_s, SECONDS_MAX)
    )
    return msgspec.structs.replace(run_file, options=msgspec.to_builtins(scenario))
