"""One new file is a new fault, wherever faults are drawn, checked, shown or excused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NEW_FAULT = '''"""Ice ages: nodes freeze.

They thaw later.
"""

from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Range, Targets
from nemesis.topology import Strike

FREEZE = Fault(
    name="deep-freeze", does="nothing moves", targets=Targets.NODES, required={"degrees": Range(1, 9)},
    is_silencing=True, is_prepared=True, beyond={"docker": "containers are warm: use --runtime sim"},
)


def draw(topology, stream):
    """The first node, always."""
    nodes = topology.largest_role()[:1]
    return Strike(fault="deep-freeze", targets=nodes, args={"degrees": stream.between(1, 9)})


PACKAGE = Package(
    name="ice-age",
    about=__doc__,
    faults=(FREEZE,),
    draw=draw,
    excuse=Excuse.NODES | Excuse.LINKS,
    probe="ice.",
    heals="it thaws.",
    colour="#010203",
)
'''
FIND_IT = """
import json, sys
from pathlib import Path

import nemesis.faults

nemesis.faults.__path__.append(sys.argv[1])
from checkers.history.tables import windows
from harness.cli.run import FAULTS_HELP
from harness.core.draw import Draw
from harness.core.errors import ScenarioError
from harness.report.pictures.plots import fault_colours
from harness.report.pictures.timeline import DOWN
from harness.scenario.registry import _problems, load_cluster
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario, decide
from nemesis import page
from nemesis.overlap import conflict
from nemesis.plan import Plan, Step
from nemesis.registry import EXCUSES, PACKAGES
from nemesis.validation import problems
from tests.worlds.run_cases import Run
from tests.unit.nemesis.topologies import SMALL


def attached(cluster, **chosen):
    try:
        decide(Scenario(cluster="tutorial", attach="project", **chosen), cluster)
    except ScenarioError as error:
        return str(error)


cluster = load_cluster(installed("tutorial"))
cluster.faults = (*cluster.faults, "ice-age")
drawn = decide(Scenario(cluster="tutorial", nemesis=("ice-age",), seed=1), cluster).plan
frozen = drawn.steps[0]
cut = Step(fault="cut", package="partition", at_ns=0, until_ns=10**12, targets=("n1>n2",))
wrong = Step(fault="deep-freeze", package="ice-age", at_ns=0, until_ns=1, targets=("n1",), args={"degrees": 10})
run = Run()
run.fault("ice-age", "d1", 50, 500)
run.fault("busy", "d1", 50, 500)
run.append(120, {0: 1}, at=1, node="d1")
history = run.write(Path(sys.argv[2]))
lines = page.rewritten(page.PAGE.read_text(encoding="utf-8")).splitlines()
print(json.dumps({
    "drawn": sorted({(step.fault, step.package, *step.targets) for step in drawn.steps}),
    "accepted": list(_problems(cluster)),
    "wrong": problems(Plan(steps=(wrong,)), SMALL),
    "beyond": problems(Plan(steps=(frozen,)), SMALL, runtime="docker"),
    "overlap": conflict(frozen, cut),
    "attached": attached(cluster, nemesis=("ice-age",)),
    "help": "ice-age" in FAULTS_HELP,
    "page": [line for line in lines if any(name in line for name in ("ice-age", "deep-freeze", "thaw"))],
    "colour": fault_colours(["ice-age"])[0][0],
    "down": "ice-age" in DOWN,
    "excuses": [str(window.excuse.value) for window in windows(history, EXCUSES)],
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a process with one more file in nemesis/faults finds of it."""
    folder = tmp_path_factory.mktemp("new")
    (folder / "faults").mkdir()
    (folder / "faults" / "ice_age.py").write_text(NEW_FAULT)
    command = [sys.executable, "-c", FIND_IT, str(folder / "faults"), str(folder / "run")]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("drawn", [["deep-freeze", "ice-age", "n1"]]),
        ("accepted", []),
        ("wrong", ["step 0 (deep-freeze): args degrees is 10: it must be from 1 to 9"]),
        ("beyond", ["step 0 (deep-freeze): containers are warm: use --runtime sim"]),
        ("overlap", "every link that cut strikes ends at n1, which deep-freeze holds down"),
        ("attached", "ice-age must be prepared when a server is started: not with --attach"),
        ("help", True),
        (
            "page",
            [
                "### ice-age",
                "They thaw later.",
                "- **Healed:** it thaws.",
                "| `deep-freeze` | nodes | `degrees` | nothing moves (not in `docker`) |",
            ],
        ),
        ("colour", "#010203"),
        ("down", True),
        ("excuses", ["9", "0"]),
    ],
)
def test_one_file_adds_a_fault_to(found: dict[str, object], where: str, what: object) -> None:
    assert found[where] == what
