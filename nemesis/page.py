"""The parts of docs/faults.md that follow from the declarations of faults. `python -m nemesis.page` updates them."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Final

from nemesis.fault import Allowed, Fault, Package
from nemesis.registry import FAULTS, PACKAGES

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "faults.md"
LINE_MAX: Final = 120


def rewritten(page: str) -> str:
    """The page with its parts between markers written anew from the declarations; the rest stays."""
    parts = {
        "sections": [line for package in PACKAGES.values() for line in _section(package)],
        "steps": [
            "| fault | targets | arguments | until the step ends |",
            "| --- | --- | --- | --- |",
            *map(_fault_row, FAULTS.values()),
        ],
    }
    for name, lines in parts.items():
        before, begin, rest = page.partition(f"<!-- {name}: python -m nemesis.page writes them -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->\n")
        page = "".join((before, begin, *(f"{line}\n" for line in lines), end, after))
    return page


def _section(package: Package) -> Iterator[str]:
    yield from (f"### {package.name}", "")
    for paragraph in _paragraphs(package.about)[1:]:
        yield from (fill(paragraph, LINE_MAX, break_on_hyphens=False), "")
    drawn = _paragraphs(package.draw.__doc__)[0]
    for name, text in (("Counted", package.probe), ("Healed", package.heals), ("Drawn", drawn)):
        line = f"- **{name}:** {text[0].lower()}{text[1:]}"
        yield fill(line, LINE_MAX, subsequent_indent="  ", break_on_hyphens=False)
    yield ""


def _paragraphs(docstring: str | None) -> list[str]:
    """The paragraphs of a docstring, each in one line."""
    return [" ".join(paragraph.split()) for paragraph in (docstring or "").split("\n\n")]


def _fault_row(fault: Fault) -> str:
    only = "".join(f" (not in `{runtime}`)" for runtime in fault.beyond)
    return f"| `{fault.name}` | {fault.targets.value} | {_arguments(fault)} | {fault.does}{only} |"


def _arguments(fault: Fault) -> str:
    required = [_argument(name, allowed) for name, allowed in fault.required.items()]
    optional = [_argument(name, allowed) for name, allowed in fault.optional.items()]
    if fault.needs_one:
        return f"at least one of {', '.join(optional)}"
    return ", ".join([*required, *(f"optionally {each}" for each in optional)]) or "none"


def _argument(name: str, allowed: Allowed) -> str:
    """The argument's name; with the allowed values, if these are a few names."""
    return f"`{name}` ({', '.join(allowed)})" if isinstance(allowed, tuple) and allowed else f"`{name}`"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
