"""How the verdicts on stored histories were reached: python -m tests.bench.decided [FOLDER].

Each file below the folder (../shared/histories) is judged at some models. Counted are verdicts and ways: proved,
a counterexample, or neither. What is no history of transactions is judged by what it is.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from checkers.engine.datasets import LocalEngine
from harness.core.errors import HistoryError, ScenarioError
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.report.model import how_decided

SHARED: Final = Path(__file__).resolve().parents[3] / "shared" / "histories"
MODELS: Final = (None, "serializable", "snapshot-isolation", "causal-cerone", "read-atomic", "read-committed")


def ways(path: Path) -> Counter[tuple[str, str, str]]:
    """(model, verdict, way) of that file at each model; empty if it is no history."""
    result = Counter[tuple[str, str, str]]()
    with tempfile.TemporaryDirectory() as name:
        try:
            loaded = load(path, Path(name, "loaded"))
        except (HistoryError, ScenarioError) as error:
            print(f"{path}: {error}")
            return result
        for model in MODELS:
            report = judge(loaded, LocalEngine(), model=model)
            result[model or "as it is", report.verdict, how_decided(report) or "by another check"] += 1
            print(path.name, model, report.verdict, how_decided(report), report.reason, sep="\t")
    return result


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED
    total = Counter[tuple[str, str, str]]()
    for path in sorted(each for each in folder.rglob("*") if each.suffix in {".edn", ".json", ".log"}):
        total += ways(path)
    for (model, verdict, way), count in sorted(total.items()):
        print(f"{count:5d}  {model:20} {verdict:8} {way}")


if __name__ == "__main__":
    main()
