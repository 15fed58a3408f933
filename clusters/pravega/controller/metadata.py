"""Access to the metadata store, for procedures of controllers and readers."""

from collections.abc import Sequence
from typing import NamedTuple

from clusters.parts.cas_store import ABSENT, Cas, Get, Held, List, Listing, Next
from clusters.parts.procedures import Ask
from clusters.parts.routing import Procedure
from clusters.pravega.records import (
    ABORTS,
    COMMITS,
    COMMITTING,
    HISTORY,
    SEAL,
    STATE,
    STREAM,
    TRANSITION,
    TRUNCATE,
    TRUNCATION,
    Committing,
    History,
    State,
    Transition,
    Truncation,
    committing_of,
    first_history,
    history_of,
    state_of,
    transition_of,
    truncation_of,
)
from clusters.pravega.shape import STORE_PLACE
from harness.core.machine import Message

_NAMES = (STATE, HISTORY, COMMITTING, TRANSITION, COMMITS, SEAL, TRUNCATE, TRUNCATION)


class Superseded(Exception):
    """Another controller, or an earlier attempt of this one, has changed what was read: begin anew."""


class Stream(NamedTuple):
    """The records of the stream, as of one moment, with the versions of what was there."""

    state: State
    history: History
    committing: Committing | None
    transition: Transition | None
    truncation: Truncation | None
    versions: dict[str, int]

    @property
    def aborts(self) -> tuple[int, ...]:
        """The transactions to be aborted."""
        return tuple(int(name[len(ABORTS) :]) for name in self.versions if name.startswith(ABORTS))


def one(request: tuple[str, Message]) -> Procedure[Message]:
    """The answer to a request; raises Superseded if there is none."""
    (answer,) = yield Ask((request,))
    if answer is None:
        raise Superseded
    return answer


def held(name: str) -> Procedure[Held]:
    """What is under a name."""
    answer = yield from one((STORE_PLACE, Get(name)))
    assert isinstance(answer, Held)
    return answer


def listed(prefix: str) -> Procedure[tuple[Held, ...]]:
    """All that is under names that begin so."""
    answer = yield from one((STORE_PLACE, List(prefix)))
    assert isinstance(answer, Listing)
    return answer.entries


def changed(name: str, expected: int, value: bytes | None) -> Procedure[Held]:
    """What is under a name after an attempt to change it."""
    answer = yield from one((STORE_PLACE, Cas(name, expected, value)))
    assert isinstance(answer, Held)
    return answer


def replaced(name: str, expected: int, value: bytes | None) -> Procedure[int]:
    """Change what is under a name, and return its version; raises Superseded if another version is there."""
    answer = yield from changed(name, expected, value)
    if not answer.is_done:
        raise Superseded
    return answer.version


def each(requests: Sequence[Get | Cas]) -> Procedure[list[Held]]:
    """The answers to several requests, which the store serves in this order unless one has to be sent again."""
    answers = yield Ask(tuple((STORE_PLACE, request) for request in requests))
    found = [answer for answer in answers if isinstance(answer, Held)]
    if len(found) < len(requests):
        raise Superseded
    return found


def counted(name: str) -> Procedure[int]:
    """The next number under a name."""
    answer = yield from one((STORE_PLACE, Next(name)))
    assert isinstance(answer, Held)
    return int(answer.value or b"0")


def stream() -> Procedure[Stream]:
    """The records of the stream. An empty value is nothing: what is removed would lose its version with its name."""
    entries = {entry.name: entry for entry in (yield from listed(STREAM))}
    found = {name: entry.value for name, entry in entries.items() if entry.value}
    return Stream(
        state=state_of(found[STATE]) if STATE in found else State(),
        history=history_of(found[HISTORY]) if HISTORY in found else first_history(),
        committing=committing_of(found[COMMITTING]) if COMMITTING in found else None,
        transition=transition_of(found[TRANSITION]) if TRANSITION in found else None,
        truncation=truncation_of(found[TRUNCATION]) if TRUNCATION in found else None,
        versions=dict.fromkeys(_NAMES, ABSENT) | {name: entry.version for name, entry in entries.items()},
    )


def state() -> Procedure[State]:
    """The present work of the stream's processor."""
    entry = yield from held(STATE)
    return state_of(entry.value) if entry.value else State()


def history() -> Procedure[History]:
    """The epochs."""
    entry = yield from held(HISTORY)
    return history_of(entry.value) if entry.value is not None else first_history()
