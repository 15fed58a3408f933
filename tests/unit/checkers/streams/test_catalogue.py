"""A stream rule that stands in one new file is found wherever rules are used."""

import json
import subprocess
import sys
from pathlib import Path

from checkers.streams.catalogue import RULES

RULE = '''
"""S99 forbidden-seven: no event shows the value 7."""

from typing import Final

import numpy as np

from checkers.streams.examples import Example
from checkers.streams.findings import arrived
from checkers.streams.rule import OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.history.names import Names
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import ROW


def sevens(view: StreamView) -> Ruling:
    """S99: rows with the value 7. A witness is a row."""
    rows = np.flatnonzero(view.deliveries.kind == ROW)
    return Ruling.of_events(rows[view.deliveries.value[rows] == 7], witnesses=len(rows))


def _sentence(example: Example, name: Names) -> str:
    return f"{arrived(example, name)}, which nobody may see."


FORBIDDEN_SEVEN: Final = Rule(
    name="forbidden-seven",
    id="S99",
    rank=1,
    anomaly=Anomaly(meaning="An event shows a seven.", cause=Cause.EVENT),
    witness="a row that could be a seven",
    is_online=True,
    scope=OfLog(sevens, _sentence),
)
'''
ASKING = """
import json
import sys

from checkers.streams import rules

rules.__path__.append(sys.argv[1])

from checkers.history.names import PLAIN
from checkers.streams.check import finding
from checkers.streams.online import Online
from checkers.streams.check import CHECKS
from harness.judging.checks import require_known
from harness.cli.texts.promises_page import promises_pages
from harness.scenario.consent import installed
from harness.core.promises import Promise
from harness.scenario.registry import _problems, load_cluster
from tests.worlds.streams.language import deliveries_of, events
from tests.worlds.streams.cases import contract, outcome

LOG = "open@0 x=1@1 x=7@2 y=7@3"
result = outcome(LOG)
promise = Promise(id="P", text="No sevens.", source="test", forbids=("forbidden-seven",))
require_known([promise], "a file")
cluster = load_cluster(installed("tutorial"))
cluster.promises = (promise,)
print(
    json.dumps(
        {
            "witnesses": result.witnesses["forbidden-seven"],
            "sentences": [finding(example, PLAIN).sentence for example in result.examples],
            "check": "forbidden-seven" in CHECKS[0].anomalies,
            "problems": list(_problems(cluster)),
            "page": "".join(promises_pages([cluster]).values()),
            "online": [each.anomaly for each in Online(contract()).feed(deliveries_of(events(LOG)))],
        }
    )
)
"""


def test_a_rule_in_one_new_file_is_found_in_all_places(tmp_path: Path) -> None:
    (tmp_path / "forbidden_seven.py").write_text(RULE, encoding="utf-8")
    command = [sys.executable, "-c", ASKING, str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[4], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["witnesses"] == 3
    assert [sentence.split(" reached ")[1] for sentence in found["sentences"]] == ["s1, which nobody may see."]
    assert found["check"], "it is no anomaly of the check"
    assert found["problems"] == [], "a cluster cannot promise it"
    assert "- `forbidden-seven`: An event shows a seven. Checked by `streams`." in found["page"]
    row = "| S99 | `forbidden-seven` | An event shows a seven. | a row that could be a seven | the events alone |"
    assert row in found["page"]
    assert found["online"] == ["forbidden-seven", "forbidden-seven"]
    assert "forbidden-seven" not in RULES


def test_rules_are_in_the_order_of_findings_and_declare_all_that_pages_show() -> None:
    ranks = [rule.rank for rule in RULES.values()]
    assert ranks == sorted(set(ranks))
    for name, rule in RULES.items():
        assert rule.name == name
        assert rule.id.startswith("S")
        assert rule.anomaly.meaning.endswith(".")
        assert not rule.witness.endswith(".")
