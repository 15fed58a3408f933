"""What can go wrong with the harness. A bad database is not an error: it is a verdict.

SeamarkError
├── ScenarioError   a person asked for what cannot be done: an option, a plan, a cluster file (exit 64)
├── ProtocolError   a machine was given an input that its model does not allow; nothing changed
├── HistoryError    recorded evidence is malformed: the message names file, record and remedy (exit 4)
├── Stalled         nothing could go on: names what was awaited, and for how long
└── DeployError     a container or image failed; carries the tail of its log
"""


class SeamarkError(Exception):
    """The root of all errors of our own. Its text is one line that says what, where, and what to do."""


class ScenarioError(SeamarkError):
    """The scenario cannot be carried out as written; the message says what to change."""


class ProtocolError(SeamarkError):
    """An input that the model does not allow. Nothing changed."""


class HistoryError(SeamarkError):
    """Evidence is malformed; the message names the file and the record."""


class Stalled(SeamarkError):
    """No progress is possible: says who awaits what, since when."""


class DeployError(SeamarkError):
    """A container or image failed; carries the tail of its log."""


def require(condition: bool, problem: str, subject: object) -> None:
    """Raise ScenarioError unless `condition` holds: for what a person writes, checked when it is built."""
    if not condition:
        raise ScenarioError(f"{type(subject).__name__}: {problem}")
