"""A harness that is killed: killed.py MOMENT ARGUMENT... is `seamark ARGUMENT...` until that moment.

In the phases `set-up` and `checking` the moment is a number of function calls in the harness, `set-up:0` and
`checking:0` only count: the numbers are printed at the end, as PHASE CALLS. In `load`, `healing` and `final` it is a
number of records, and the simulation kills the whole group.
"""

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import harness.run.carry_out
import harness.run.running
from harness.cli.main import main
from harness.scenario.consent import Code

BROKEN_CHILD = str(Path(__file__).with_name("broken_child.py"))
CALLS: Counter[str] = Counter()
PHASE = ["set-up"]


def counted(phase: str, count: int) -> None:
    """Kill this process at the call number `count` of that phase."""

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event in {"call", "c_call"}:
            CALLS[PHASE[0]] += 1
            if (PHASE[0], CALLS[PHASE[0]]) == (phase, count):
                os.kill(os.getpid(), signal.SIGKILL)

    execute = harness.run.running.execute

    def executed(run: Path, code: Code, **options: object) -> object:
        PHASE[0] = "simulation"
        took_s = execute(run, code)
        PHASE[0] = "checking"
        return took_s

    setattr(harness.run.carry_out, "execute", executed)  # noqa: B010  A function takes the place of another, for mypy too.
    sys.setprofile(profile)


if __name__ == "__main__":
    phase, number = sys.argv.pop(1).split(":")
    if phase in ("set-up", "checking"):
        counted(phase, int(number))
    else:
        harness.run.running.CHILDREN = {"sim": (BROKEN_CHILD, f"kill-all:{phase}:{number}")}
    try:
        main()
    finally:
        sys.setprofile(None)
        print(*(f"{name} {count}" for name, count in CALLS.items()), sep="\n", file=sys.stderr)
