import json
import re
from pathlib import Path

from nemesis.package import PACKAGES
from nemesis.validation import FORMS, plan_from_json, problems
from tests.unit.nemesis.topologies import SMALL

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


def test_the_page_lists_every_package_in_order() -> None:
    assert [row.split("`")[1] for row in rows("Packages")] == list(PACKAGES)


def test_the_page_lists_every_fault_with_its_arguments() -> None:
    told: dict[str, set[str]] = {}
    for row in rows("Steps"):
        faults, _, arguments = row.strip("|").split("|")
        for fault in re.findall(r"`([\w-]+)`", faults):
            told[fault] = set(re.findall(r"`(\w+)`", arguments)) - {"lost", "torn", "kept"}
    assert told == {fault: {*form.required, *form.optional} for fault, form in FORMS.items()}


def test_the_plan_on_the_page_is_sound() -> None:
    text = PAGE.split("```json\n")[1].split("```")[0]
    plan = plan_from_json(text)
    assert len(plan.steps) == len(json.loads(text)["steps"]) == 1
    assert problems(plan, SMALL) == []
