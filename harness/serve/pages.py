"""The pages as text, from templates, in the style of reports."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from jinja2 import Environment

from harness.core.verdict import Verdict
from harness.report.page import environment
from harness.serve.index import RUNNING, STATES, UNJUDGED, UNREADABLE

LISTED_MAX: Final = 200  # The most rows of one table of a run.
# Classes of colours.
COLOURS: Final[Mapping[str, str]] = {each.value: each.value for each in Verdict} | {
    RUNNING: "running",
    UNJUDGED: "open",
    UNREADABLE: "error",
}
NAVIGATION: Final = (("Runs", "/runs"), ("Sweeps", "/sweeps"), ("Trends", "/trends"), ("Calibration", "/calibration"))


def rendered(template: str, store: Path, here: str, **names: object) -> str:
    """A page. `here` is the address of its entry in the navigation."""
    return _environment().get_template(template).render(store=str(store), here=here, navigation=NAVIGATION, **names)


@cache
def style() -> str:
    """The style sheet of all pages."""
    return _environment().get_template("serve_style.html").render(colours=[])


@cache
def script() -> str:
    """The script of all pages. They show the same content without it."""
    return _environment().get_template("serve_script.html").render()


@cache
def _environment() -> Environment:
    found = environment("harness.serve", "harness.report")
    found.filters["place"] = _place
    found.filters["when"] = _when
    found.globals |= {"listed_max": LISTED_MAX, "states": STATES, "colours_of": COLOURS, "query": _query}
    return found


def _place(text: str) -> str:
    """A path in the store as part of an address."""
    return quote(text, errors="surrogateescape")


def _query(**values: object) -> str:
    """The parameters of an address; those without a value are left out."""
    chosen = {name: str(value) for name, value in values.items() if value not in (None, "")}
    return urlencode(chosen, errors="surrogateescape")


def _when(utc: str | None) -> str:
    return "at an unknown time" if not utc else utc.replace("T", " ").removesuffix("Z")
