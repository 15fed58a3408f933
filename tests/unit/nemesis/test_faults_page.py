import json
import re

from nemesis import page
from nemesis.registry import FAULTS, PACKAGES
from nemesis.validation import plan_from_json, problems
from tests.unit.nemesis.topologies import SMALL

PAGE = page.PAGE.read_text(encoding="utf-8")


def rows(heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


def test_the_page_lists_every_package_in_order() -> None:
    assert re.findall(r"^### (.+)$", PAGE, re.MULTILINE) == list(PACKAGES)


def test_the_page_lists_every_fault_with_its_arguments() -> None:
    result: dict[str, set[str]] = {}
    for row in rows("Steps"):
        fault, _, arguments, _ = row.strip("|").split("|")
        result[fault.strip(" `")] = set(re.findall(r"`(\w+)`", arguments))
    assert result == {name: {*fault.required, *fault.optional} for name, fault in FAULTS.items()}


def test_the_page_says_what_the_declarations_say() -> None:
    assert page.rewritten(PAGE) == PAGE, "run .venv/bin/python -m nemesis.page"
    assert (
        page.rewritten(PAGE.replace("| `cut` | links |", "| `slash` | links |").replace("### crash", "### smash"))
        == PAGE
    )


def test_the_plan_on_the_page_is_sound() -> None:
    text = PAGE.split("```json\n")[1].split("```")[0]
    plan = plan_from_json(text)
    assert len(plan.steps) == len(json.loads(text)["steps"]) > 0
    assert problems(plan, SMALL) == []
