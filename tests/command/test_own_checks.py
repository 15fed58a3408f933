"""Checks that a system brings: they judge as any other, and a run that names them is no consent to load them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.core.record import Json
from harness.scenario.own_checks import Source, brought, digest
from tests.command.conftest import Seamark

LOCAL = ("--engine", "local")
# Every read of the tutorial sees fewer than so many elements: a check whose verdict a test can choose.
STOCK = """
from seamark import Check, Finding, History, Judgement

LIMIT = {limit}


def short(history: History) -> Judgement:
    reads = [
        (op, mop) for op in history.operations("txn", outcome="ok") for mop in op.mops if mop.f == "r"
    ]
    long = [(op, mop) for op, mop in reads if len(mop.value) > LIMIT]
    return Judgement(
        witnesses={{"long-list": len(reads)}},
        findings=[
            Finding(anomaly="long-list", sentence=f"T{{op.index}} read {{len(mop.value)}} elements.", ops=(op.index,))
            for op, mop in long
        ],
    )


CHECKS = (Check(name="stock", anomalies={{"long-list": "A list has more elements than fit."}}, judge=short),)
"""
SHOP = """
from clusters.tutorial.cluster import Tutorial
from seamark import Promise


class Shop(Tutorial):
    name = "shop"
    checks = ("stock.py",)
    promises = (*Tutorial.promises, Promise(id="SHOP-1", text="Lists stay short.", source="us", forbids=("long-list",)))
"""
TRACE = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"


@pytest.fixture(autouse=True)
def _no_module_stays() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith(("seamark_own_", "acme"))]:
        del sys.modules[name]


def written(folder: Path, limit: int) -> Path:
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    (folder / "stock.py").write_text(STOCK.format(limit=limit), encoding="utf-8")
    return folder / "stock.py"


def rewritten(run: Path, **fields: object) -> None:
    path = run / "run.json"
    path.write_bytes(msgspec.json.encode(msgspec.json.decode(path.read_bytes()) | fields))


def promised(report: dict[str, Json]) -> dict[str, tuple[Json, Json]]:
    """The verdict and the reason of each promise."""
    rows = report["promises"]
    assert isinstance(rows, list)
    return {str(row["id"]): (row["verdict"], row["reason"]) for row in rows if isinstance(row, dict)}


def test_a_system_in_a_file_brings_a_check_that_judges_its_runs(seamark: Seamark, tmp_path: Path) -> None:
    stock = written(tmp_path, 2)
    short = ("--cluster", "shop.py:Shop", "--time", "4", "--seed", "3", *LOCAL)
    ran = seamark("run", *short, "--json")
    assert (ran.code, promised(ran.json)["SHOP-1"]) == (1, ("violated", None))
    [run] = (tmp_path / "store" / "shop").iterdir()
    [finding] = [each for each in ran.json["findings"] if each["anomaly"] == "long-list"]  # type: ignore[union-attr, index, call-overload]
    assert (finding["checker"], finding["promise"]) == ("stock", "SHOP-1")  # type: ignore[call-overload, index]
    assert "A list has more elements than fit." in (run / "report.html").read_text(encoding="utf-8")
    assert "Long list, " in (run / "junit.xml").read_text(encoding="utf-8")

    unloaded = seamark("check", run, *LOCAL, "--json")
    verdict, reason = promised(unloaded.json)["SHOP-1"]
    assert (unloaded.code, verdict) == (2, "unknown")
    assert f"add --checks {stock}" in str(reason)

    given = seamark("check", run, "--checks", stock, *LOCAL, "--json")
    assert given.code == 1
    assert given.json["findings"] == ran.json["findings"]
    assert seamark("replay", run, "--cluster", "shop.py:Shop", *LOCAL, "--quiet").code == 1

    written(tmp_path, 1_000_000)  # The command line names the file, whatever it was when the run was recorded.
    mended = seamark("check", run, "--checks", stock, *LOCAL, "--json")
    assert (mended.code, promised(mended.json)["SHOP-1"]) == (0, ("holds", None))


def test_a_check_of_the_command_line_judges_a_history_from_elsewhere(seamark: Seamark, tmp_path: Path) -> None:
    stock = written(tmp_path, 1)
    history = tmp_path / "history.edn"
    ops = "[[:append 1 2]]", "[[:append 1 3]]", "[[:r 1 [2 3]]]"
    history.write_text(
        "".join(f"{{:type :{kind} :process 0 :f :txn :value {op}}}\n" for op in ops for kind in ("invoke", "ok"))
    )
    judged = seamark("check", history, "--checks", stock, *LOCAL, "--json")
    assert (judged.code, promised(judged.json)["stock"]) == (1, ("violated", None))
    promises = tmp_path / "promises.toml"
    promises.write_text('[[promise]]\nid = "S"\nforbids = ["long-list"]\n', encoding="utf-8")
    named = seamark("check", history, "--promises", promises, "--checks", stock, *LOCAL, "--json")
    assert list(promised(named.json)) == ["S"]
    refused = seamark("check", history, "--promises", promises, *LOCAL)
    assert (refused.code, "'long-list'" in refused.line) == (64, True)


STACK = """
from seamark import linearizable

class Stack:
    def initial(self): return ()
    def step(self, state, op):
        if op.f == "push":
            return [(*state, op.asked)]
        answer, after = (state[-1], state[:-1]) if state else (None, state)
        return [after] if not op.is_answered or op.value == answer else []
    def key(self, op): return None
    def show(self, op, result): return f"{op.f} {result}"

CHECKS = (linearizable(Stack(), name="stack", of=("push", "pop")),)
"""


@pytest.mark.parametrize(("popped", "code", "verdict"), [(2, 0, "holds"), (1, 1, "violated")])
def test_a_history_without_transactions_is_judged_by_the_model_of_the_command_line_alone(
    seamark: Seamark, tmp_path: Path, popped: int, code: int, verdict: str
) -> None:
    (tmp_path / "stack.py").write_text(STACK, encoding="utf-8")
    history = tmp_path / "history.edn"
    steps = [("push", "1", "1"), ("push", "2", "2"), ("pop", "nil", str(popped))]
    history.write_text(
        "".join(
            f"{{:type :invoke :process 0 :f :{f} :value {asked}}}\n{{:type :ok :process 0 :f :{f} :value {answer}}}\n"
            for f, asked, answer in steps
        )
    )
    judged = seamark("check", history, "--checks", tmp_path / "stack.py", *LOCAL, "--json")
    assert (judged.code, promised(judged.json)) == (code, {"stack": (verdict, None)})


@pytest.mark.parametrize("module", ["{run}/evil.py", "evil", "os", "clusters.ndb.cluster", "seamark.commands"])
@pytest.mark.parametrize("command", ["check", "check run.json", "list", "export", "serve"])
def test_a_run_that_names_checks_executes_nothing(
    seamark: Seamark, run_copy: Path, module: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run itself lies in the working directory, and its digest of the file is right."""
    monkeypatch.chdir(run_copy)
    evil = run_copy / "evil.py"
    evil.write_text(TRACE + STOCK.format(limit=0), encoding="utf-8")
    sha256 = digest(Source("seamark_own_evil", evil).files())
    named = {"module": module.format(run=run_copy), "sha256": sha256, "checks": {"stock": ["long-list"]}}
    promise = {"id": "X", "text": "", "source": "", "forbids": ["long-list"]}
    rewritten(run_copy, brought=[named], promises=[promise])
    loaded = set(sys.modules)
    arguments = {
        "check": ("check", run_copy, *LOCAL, "--json"),
        "check run.json": ("check", run_copy / "run.json", *LOCAL, "--json"),
        "list": ("list", "--store", run_copy.parent.parent),
        "export": ("export", run_copy),
        "serve": ("serve", "--help"),
    }[command]
    outcome = seamark(*arguments)
    assert not (run_copy / "imported").exists()
    assert not {"evil", "seamark_own_evil"} & (set(sys.modules) - loaded)
    if command.startswith("check"):
        verdict, reason = promised(outcome.json)["X"]
        assert (outcome.code, verdict) == (2, "unknown")
        assert "check-not-loaded: " in str(reason)


def test_an_installed_package_brings_checks_if_they_are_those_of_the_run(
    seamark: Seamark, run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "acme" / "checks").mkdir(parents=True)
    (site / "acme" / "__init__.py").write_text("raise RuntimeError('nobody needs all of it')\n", encoding="utf-8")
    source = site / "acme" / "checks" / "__init__.py"
    source.write_text(STOCK.format(limit=1_000_000), encoding="utf-8")
    info = site / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    (site / "acme" / "__init__.py").write_text("", encoding="utf-8")
    promise = {"id": "A", "text": "", "source": "", "forbids": ["long-list"]}
    rewritten(run_copy, brought=[msgspec.to_builtins(brought(Source("acme.checks")))], promises=[promise])

    unregistered = promised(seamark("check", run_copy, *LOCAL, "--json").json)["A"]
    assert unregistered[0] == "unknown"
    assert "acme.checks is not installed as an entry point of seamark.checks" in str(unregistered[1])
    (info / "entry_points.txt").write_text("[seamark.checks]\nacme = acme.checks\n", encoding="utf-8")
    assert promised(seamark("check", run_copy, *LOCAL, "--json").json)["A"] == ("holds", None)

    source.write_text(STOCK.format(limit=0), encoding="utf-8")
    verdict, reason = promised(seamark("check", run_copy, *LOCAL, "--json").json)["A"]
    assert (verdict, "add --checks acme.checks" in str(reason)) == ("unknown", True)
    for name in [name for name in sys.modules if name.startswith("acme")]:
        del sys.modules[name]
    assert promised(seamark("check", run_copy, "--checks", "acme", *LOCAL, "--json").json)["A"][0] == "violated"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("CHECKS = ()", "brings no checks: CHECKS must be a tuple of seamark.Check"),
        ("x = 1", "brings no checks"),
        ("import nowhere", "stock.py:1: it cannot be loaded: ModuleNotFoundError"),
        (STOCK.format(limit=1).replace('name="stock"', 'name="streams"'), "two checks of the name 'streams'"),
        (STOCK.format(limit=1).replace('name="stock"', 'name="Stock!"'), "small letters, digits and dashes"),
        (STOCK.format(limit=1).replace("name=", "nmae="), "Unexpected keyword argument 'nmae'"),
    ],
)
def test_a_module_without_proper_checks_is_one_line(
    seamark: Seamark, run_copy: Path, tmp_path: Path, text: str, line: str
) -> None:
    (tmp_path / "stock.py").write_text(text, encoding="utf-8")
    outcome = seamark("check", run_copy, "--checks", "stock.py", *LOCAL)
    assert (outcome.code, line in outcome.line) == (64, True), outcome.line


def test_a_check_that_reports_what_it_does_not_declare_is_an_error_of_its_own(
    seamark: Seamark, run_copy: Path, tmp_path: Path
) -> None:
    text = STOCK.format(limit=0).replace('anomaly="long-list"', 'anomaly="longer-list"')
    (tmp_path / "stock.py").write_text(text, encoding="utf-8")
    outcome = seamark("check", run_copy, "--checks", "stock.py", *LOCAL, "--json")
    assert outcome.code == 4
    assert "'longer-list' is not among its anomalies" in str(outcome.json["reason"])


def test_a_fault_in_a_check_is_one_of_the_users_file_with_its_line(
    seamark: Seamark, tmp_path: Path, run_copy: Path
) -> None:
    written(tmp_path, 9)
    stock = tmp_path / "stock.py"
    text = stock.read_text(encoding="utf-8").replace("len(reads)", "reads.size")
    stock.write_text(text, encoding="utf-8")
    outcome = seamark("check", run_copy, "--checks", "stock.py", *LOCAL, "--quiet")
    assert outcome.code == 4
    line = text[: text.index("reads.size")].count("\n") + 1
    said = "the check stock failed: AttributeError: 'list' object has no attribute 'size'"
    assert f"{said} (a fault in your file, at {stock}:{line}; details in" in outcome.out
    assert "fault of the harness" not in outcome.out
    missing = seamark("check", run_copy, "--checks", "nope.py", *LOCAL)
    assert (missing.code, "nope.py: the file with checks cannot be read" in missing.line) == (64, True)


def test_no_check_of_that_name_is_installed(seamark: Seamark, run_copy: Path) -> None:
    outcome = seamark("check", run_copy, "--checks", "ndv", *LOCAL)
    assert (outcome.code, "'ndv'" in outcome.line, "'ndb'" in outcome.line or "ndb" in outcome.line) == (64, True, True)


def test_the_file_of_a_system_loads_no_checker_where_nodes_run() -> None:
    """Nodes, and the process of a simulation, import the file of a system, and with it names of seamark."""
    code = (
        "import sys\n"
        "from seamark import Completion, Doors, MachineCluster, MicroOp, NodeId, Promise, Service, Settings, System\n"
        "from harness.scenario.consent import installed\n"
        "from harness.scenario.registry import load_cluster\n"
        "load_cluster(installed('ndb'), is_checked=True)\n"
        "kinds = 'checkers.engine', 'checkers.own', 'clusters.ndb.checks'\n"
        "print(*(name for name in sys.modules if name.startswith(kinds)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_plain_history_loads_no_cluster(tmp_path: Path) -> None:
    history = tmp_path / "history.edn"
    history.write_text(
        "".join(f"{{:type :{kind} :process 0 :f :txn :value [[:r 1 []]]}}\n" for kind in ("invoke", "ok"))
    )
    code = (
        "import sys, seamark\n"
        f"seamark.check({str(history)!r})\n"
        "print(*(name for name in sys.modules if name.startswith('clusters.')))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
