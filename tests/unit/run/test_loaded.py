"""What a command loads before it begins: modules are counted, as seconds differ among machines."""

import subprocess
import sys
from pathlib import Path
from typing import Final

OURS_MAX: Final = 212  # Modules of ours
ALL_MAX: Final = 600  # and of all, for a check of ten operations,
SLOW_MAX: Final = 5  # and dataclasses of ours: each takes 0.4 ms to make, a struct of msgspec 0.01 ms.
UNUSED: Final = frozenset(
    {"pandas", "networkx", "scipy", "pysat", "pyspark", "jinja2", "importlib.metadata", "multiprocessing", "tomllib"}
    | {"checkers.streams", "checkers.watermarks", "checkers.state", "checkers.replication", "checkers.linearizability"}
    | {"checkers.axioms.orders.polygraph", "harness.report.page", "harness.scenario.scenario", "nemesis.registry"}
    | {"harness.run.running", "harness.interpreter", "harness.runtimes.simulation", "harness.record.formats.sight"}
)
SCRIPT: Final = """
import sys
from harness.cli.main import application, main
application(None)
heavy = {"numpy", "pyarrow", "rich", "nemesis", "checkers.catalogue", "harness.judging"}
print(sorted(heavy.intersection(sys.modules)))
import pyarrow as pa, checkers.columns.arrow
from checkers.columns.arrow import flags, integers, lists
integers(pa.nulls(3, pa.int64())); flags(pa.nulls(3, pa.bool_())); lists(pa.nulls(3, pa.list_(pa.int64())))
print("pandas" in sys.modules)
from harness.core.arrow import leave_out_pandas
leave_out_pandas()
try:
    main()
except SystemExit as end:
    print(end.code)
    kinds = {each for module in list(sys.modules.values()) for each in vars(module).values() if isinstance(each, type)}
    print(*(f"{kind.__module__}.{kind.__name__}" for kind in kinds if "__dataclass_fields__" in vars(kind)))
    print(*sys.modules)
"""


def test_a_command_loads_only_what_it_needs(tmp_path: Path) -> None:
    """The command line loads no arrays; a check of ten operations no room, search or package that it does not use."""
    micro = ("[:append {} {}] [:r {} nil]", "[:append {} {}] [:r {} [{}]]")
    lines = [
        f"{{:index {2 * at + late}, :time {at}, :process {at % 3}, :type {(':invoke', ':ok')[late]}, :f :txn, "
        f":value [{micro[late].format(at % 4, at, at % 4, ' '.join(map(str, range(at % 4, at + 1, 4))))}]}}"
        for at in range(10)
        for late in (0, 1)
    ]
    history = tmp_path / "clean.edn"
    history.write_text("\n".join(lines))
    command = [sys.executable, "-c", SCRIPT, "check", str(history), "--engine", "local"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    first, second, *_, code, slow, loaded = done.stdout.splitlines()
    assert (first, second, code) == ("[]", "False", "0"), done.stdout + done.stderr
    slow_ones = [name for name in slow.split() if name.startswith(("checkers.", "harness."))]
    assert len(slow_ones) <= SLOW_MAX, slow_ones
    names = loaded.split()
    assert sorted(UNUSED.intersection(names)) == []
    ours = [name for name in names if name.partition(".")[0] in ("checkers", "harness", "nemesis", "clusters")]
    assert len(ours) <= OURS_MAX, "\n".join(sorted(ours))
    assert len(names) <= ALL_MAX
