"""Errors of the harness itself. A bad database is not an error: it is a verdict.

SeamarkError ├── ScenarioError the user requested the impossible: an option, a plan, a cluster file (exit 64) ├──
ProtocolError a machine got an input that its model does not allow; nothing changed ├── HistoryError recorded evidence
is malformed: the message names file, record and remedy (exit 4) ├── Stalled no progress is possible: names what was
awaited, and for how long ├── DeployError a container or image failed; carries the tail of its log └── Unsound a fault
of ours did something else than it must: no finding of the run counts (exit 4)
"""

from difflib import get_close_matches


class SeamarkError(Exception):
    """The base class of our errors. Its text is one line: the problem, where it is, and what to do."""


class ScenarioError(SeamarkError):
    """The scenario cannot be carried out as written; the message says how to change it."""


class ProtocolError(SeamarkError):
    """An input that the model does not allow. Nothing changed."""


class HistoryError(SeamarkError):
    """Evidence is malformed; the message names the file and the record."""


class Stalled(SeamarkError):
    """No progress is possible: the message names what is awaited, where, and since when."""


class DeployError(SeamarkError):
    """A container or image failed; carries the tail of its log."""


class Unsound(SeamarkError):
    """A fault of ours did something else than it must, so a finding of this run would accuse the wrong party."""


def require(condition: bool, problem: str, subject: object) -> None:
    """Raise ScenarioError unless `condition` holds. For checking values that the user wrote, at construction."""
    if not condition:
        raise ScenarioError(f"{type(subject).__name__}: {problem}")


def known_at(place: object, name: str, allowed: tuple[str, ...], what: str) -> None:
    """Raise ScenarioError with the place and the nearest allowed name, unless the name is one of `allowed`."""
    try:
        known(name, allowed, what)
    except ScenarioError as error:
        raise ScenarioError(f"{place}: {error}") from None


def known(name: str, allowed: tuple[str, ...], what: str, *, besides: str = "") -> str:
    """`name`, if it is one of `allowed`.

    Otherwise raises ScenarioError with the nearest one, or with all and `besides`.
    """
    if name in allowed:
        return name
    nearest = get_close_matches(name, allowed, 1, 0.5)
    every = f"choose from {', '.join(allowed)}{besides}" if allowed else f"there are none{besides}"
    hint = f"did you mean {nearest[0]}?" if nearest else every
    raise ScenarioError(f"unknown {what} {name!r}; {hint}")
