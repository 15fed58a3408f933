"""Seven models of objects, for `seamark.check(history, model=Queue())`, or in a file of checks:

    CHECKS = (linearizable(Queue(), name="fifo-queue", of=("enqueue", "dequeue")),)

A model gives the state before the first operation, the states that may follow each, and how a sentence names it. States
are hashable values. An operation without an answer has `is_answered` false: any answer is possible then.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from seamark import Op


def shown(op: Op, result: object) -> str:
    """ "push 3", "pop: 3" """
    asked = "" if op.asked is None else f" {op.asked}"
    return f"{op.f}{asked}" + (f": {result}" if op.is_answered and result is not None else "")


def followed(op: Op, answer: object, after: Hashable) -> Iterable[Hashable]:
    """The state `after`, if the operation was answered like that, or not at all."""
    return [after] if not op.is_answered or op.value == answer else []


class One:
    """What these models have in common: there is one object of each."""

    show = staticmethod(shown)

    def key(self, op: Op) -> None:
        return None


class Register(One):
    """Operations: read, write a value, cas [old, new], answered with true or false. Each with its key before it."""

    def __init__(self, first: Hashable = None) -> None:
        self.first = first

    def initial(self) -> Hashable:
        return self.first

    def key(self, op: Op) -> Any:
        return op.asked[0] if isinstance(op.asked, list) else None

    def reads(self, op: Op) -> bool:
        return op.f == "read"

    def step(self, state: Hashable, op: Op) -> Iterable[Hashable]:
        assert isinstance(op.asked, list)
        asked: Any = op.asked[1]
        match op.f:
            case "read":
                return [state] if not op.is_answered or op.value == [op.asked[0], state] else []
            case "write":
                return [asked]
            case _:
                return [asked[1]] if state == asked[0] else []


class Lock(One):
    """Operations: acquire, release; only the process that holds the lock may release it."""

    sees_process = True

    def initial(self) -> None:
        return None

    def step(self, state: Hashable, op: Op) -> Iterable[Hashable]:
        if op.f == "acquire":
            return [op.process] if state is None else []
        return [None] if state == op.process else []


class Queue(One):
    """Operations: enqueue a value, dequeue, answered with a value, or null if it was empty."""

    def initial(self) -> tuple[Hashable, ...]:
        return ()

    def step(self, state: Any, op: Op) -> Iterable[Hashable]:
        if op.f == "enqueue":
            return [(*state, op.asked)]
        return followed(op, state[0], state[1:]) if state else followed(op, None, state)


class Stack(One):
    """Operations: push a value, pop, answered with a value, or null if it was empty."""

    def initial(self) -> tuple[Hashable, ...]:
        return ()

    def step(self, state: Any, op: Op) -> Iterable[Hashable]:
        if op.f == "push":
            return [(*state, op.asked)]
        return followed(op, state[-1], state[:-1]) if state else followed(op, None, state)


class Set(One):
    """Operations: add and remove, answered with whether the set changed; has, answered with true or false."""

    def initial(self) -> frozenset[Hashable]:
        return frozenset()

    def reads(self, op: Op) -> bool:
        return op.f == "has"

    def step(self, state: Any, op: Op) -> Iterable[Hashable]:
        is_in = op.asked in state
        match op.f:
            case "add":
                return followed(op, not is_in, state | {op.asked})
            case "remove":
                return followed(op, is_in, state - {op.asked})
            case _:
                return followed(op, is_in, state)


class Counter(One):
    """Operations: add a number; read, answered with the sum."""

    def initial(self) -> int:
        return 0

    def reads(self, op: Op) -> bool:
        return op.f == "read"

    def step(self, state: Any, op: Op) -> Iterable[Hashable]:
        return [state + op.asked] if op.f == "add" else followed(op, state, state)


class FileSystem(One):
    """Operations: mkdir, write [path, text], read, remove; answered with a text, or what was wrong.

    A state is a set of pairs of a path and the text of a file, or None for a folder. Paths are like "a/b".
    """

    def initial(self) -> frozenset[tuple[str, str | None]]:
        return frozenset({("", None)})

    def reads(self, op: Op) -> bool:
        return op.f == "read"

    def step(self, state: Any, op: Op) -> Iterable[Hashable]:
        asked: Any = op.asked
        path, text = asked if op.f == "write" else (asked, None)
        there = dict(state)
        parent = path.rpartition("/")[0]
        if op.f == "read":
            return followed(op, there.get(path) if path in there else "missing", state)
        if op.f == "remove":
            if path not in there:
                return followed(op, "missing", state)
            if any(each.rpartition("/")[0] == path for each in there if each):
                return followed(op, "not empty", state)
            return followed(op, "ok", state - {(path, there[path])})
        if parent not in there or there[parent] is not None:
            return followed(op, "no folder", state)
        if path in there and (op.f == "mkdir" or there[path] is None):
            return followed(op, "exists", state)
        return followed(op, "ok", state - {(path, there.get(path))} | {(path, text)})
