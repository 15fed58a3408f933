"""Reads EDN, Clojure's notation, in blocks: for a file of any size, memory holds one block and one form.

`harness.record.formats.edn.values` defines the form of values that JSON cannot express.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.record.formats.edn.values import WORDS, atom, collection, shown

NESTING_MAX: Final = 64
FORM_MAX: Final = 16 << 20  # Bytes of one form, approximately.
_BLOCK: Final = 1 << 20  # Bytes read at once.
_ATOMS_MAX, _ATOM_LENGTH = 100_000, 64  # Short tokens with cached values: histories repeat theirs.

# All quantifiers are possessive: on a broken file the expression must not backtrack over megabytes.
_TOKEN: Final = re.compile(
    r"""[\s,]*+(                        # Commas are white space.
        "[^"\\]*+(?:\\.[^"\\]*+)*+["\\]?+  # A string; without its second quote it is not all here yet.
      | ;[^\n]*+
      | \[(?:0|[1-9][0-9]{0,17}+)(?:\ (?:0|[1-9][0-9]{0,17}+))*+\]  # What lists of integers were read as, at once.
      | [\[\](){}]
      | \#[{_]
      | \\(?:[A-Za-z][^\s,;"\[\](){}\\]*+|.)
      | [^\s,;"\[\](){}\\]++
      | .
    )""",
    re.VERBOSE | re.DOTALL,
)
_CLOSERS: Final = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_HISTORY, _END, _DISCARD = "the history", "#", "#_"
_CLOSING: Final = frozenset(_CLOSERS.values())
_MISSING: Final[Any] = object()
P = TypeVar("P")


def _nothing(_lines: bytes) -> None:
    """None for all lines: no line is plain."""


class BadEdn(Exception):
    """An error in EDN text: the problem, with its line and column, from 1."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}")
        self.problem = problem


def read_edn(path: Path) -> Iterator[Json]:
    """The forms of a file in order; if the file is one list or vector, the forms inside it.

    Raises HistoryError, naming file, line and column, if the text is not EDN or exceeds a limit.
    """
    return read_edn_with(path, _nothing)


def read_edn_with(path: Path, plain: Callable[[bytes], list[P] | None]) -> Iterator[Json | P]:
    """The forms as in `read_edn`. Lines of whole forms go to `plain` first, which may convert them itself.

    Lines for which `plain` returns None are read as usual.
    """
    try:
        with path.open("rb") as file:
            yield from forms(iter(lambda: file.read(_BLOCK), b""), plain)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    except BadEdn as bad:
        raise HistoryError(f"{path}, {bad}") from None


def one_form(text: bytes) -> Json:
    """The single form of that text. Raises ValueError if there is not exactly one, or the text is not EDN."""
    parser = _Parser()
    parser.begin()
    found = parser.feed(_TOKEN.findall(text.decode()))
    parser.finish()
    if len(found) != 1:
        raise ValueError(f"there are {len(found)} forms")
    return found[0]


def forms(blocks: Iterable[bytes], plain: Callable[[bytes], list[P] | None] = _nothing) -> Iterator[Json | P]:
    """The forms in blocks of UTF-8, as `read_edn_with` gives them. Raises BadEdn."""
    parser, decoder = _Parser(), codecs.getincrementaldecoder("utf-8-sig")()
    rest, line, column, unfinished = "", 1, 1, 0
    for block in _and_an_end(blocks):
        try:
            text = rest + decoder.decode(block, final=not block)
        except UnicodeDecodeError:
            raise BadEdn("the bytes after this are not UTF-8", *_position(rest, line, column)) from None
        whole = text.rfind("\n") + 1 if block and "\n" in text else len(text)
        lines, rest = text[:whole], text[whole:]
        found = plain(lines.encode()) if block and parser.is_between_forms else None
        if found is not None:
            if found:
                parser.begin()
            line, column, unfinished = line + lines.count("\n"), 1, 0
            yield from found
            continue
        tokens = _TOKEN.findall(lines)
        if block and tokens and lines.endswith(tokens[-1]):
            rest = tokens.pop() + rest  # It may continue in the next block.
        try:
            finished = parser.feed(tokens)
            if not block:
                parser.finish()
            unfinished = 0 if finished or parser.is_between_forms else unfinished + len(block)
            if unfinished + len(rest) > FORM_MAX:
                raise ValueError(f"one value is larger than {FORM_MAX >> 20} MiB, the limit")
        except ValueError as error:
            raise BadEdn(str(error), *_position(_before(text, parser.place), line, column)) from None
        line, column = _position(text[: len(text) - len(rest)], line, column)
        yield from finished


class _Frame(msgspec.Struct):
    """An open collection, or a prefix (a tag or discard), which ends with the next value."""

    opener: str
    items: list[Json]
    is_prefix: bool = False


class _Parser:
    """A parser with a stack of frames. `place` is the number of the current token, for messages.

    The outermost frame collects the forms: of the file, or of the one list or vector that makes up the whole file.
    After the end of that vector, a prefix on the stack forbids further forms.
    """

    def __init__(self) -> None:
        self.place = 0
        self._frames = [_Frame(_HISTORY, [])]
        self._atoms: dict[str, Json] = dict(WORDS)
        self._has_begun = self._is_wrapped = False

    def feed(self, tokens: list[str]) -> list[Json]:
        """Consume tokens; returns the forms finished by then. Raises ValueError with the problem."""
        frame, known = self._frames[-1], self._atoms.get
        for self.place, token in enumerate(tokens):
            value = known(token, _MISSING)
            if value is not _MISSING:
                frame.items.append(value)
                if frame.is_prefix:
                    frame = self._prefixed(frame)
            elif token in _CLOSING:
                frame = self._closed(token)
            else:
                frame = self._begun(token)
        finished, self._frames[0].items = self._frames[0].items, []
        self._has_begun = self._has_begun or bool(finished)
        return finished

    def begin(self) -> None:
        """Treat the next vector as a form, not as the whole file."""
        self._has_begun = True

    def finish(self) -> None:
        """Raise ValueError if a collection or prefix is still open."""
        if self._frames[-1].opener == _END:
            return
        if len(self._frames) > 1 or self._is_wrapped:
            raise ValueError(f"the file ends inside of {shown(self._frames[-1].opener)}")

    @property
    def is_between_forms(self) -> bool:
        """True if no form is open."""
        return len(self._frames) == 1

    def _begun(self, token: str) -> _Frame:
        """Consume a token that is not cached and closes nothing; returns the frame to continue in."""
        first = token[0]
        if first == "[" and len(token) > 1:
            return self._integers(token)
        if first in "[{(" or (first == "#" and token[:2] != "##"):
            return self._opened(token)
        frame = self._frames[-1]
        if first == ";":
            return frame
        value = atom(token)
        if len(token) <= _ATOM_LENGTH and len(self._atoms) < _ATOMS_MAX:
            self._atoms[token] = value
        frame.items.append(value)
        return self._prefixed(frame) if frame.is_prefix else frame

    def _integers(self, token: str) -> _Frame:
        """Consume a whole vector of integers: most elements of most histories are in such vectors."""
        numbers: list[Json] = [int(number) for number in token[1:-1].split(" ")]
        if not (self._has_begun or self._frames[0].items):
            self._opened("[").items.extend(numbers)
            return self._closed("]")
        self._check_depth()
        frame = self._frames[-1]
        frame.items.append(numbers)
        return self._prefixed(frame) if frame.is_prefix else frame

    def _check_depth(self) -> None:
        if len(self._frames) > NESTING_MAX:
            raise ValueError(f"values are nested deeper than {NESTING_MAX}, the limit")

    def _opened(self, token: str) -> _Frame:
        frames = self._frames
        if len(frames) == 1 and token in {"[", "("} and not (self._has_begun or frames[0].items):
            self._has_begun = self._is_wrapped = True
            frames[0].opener = token
            return frames[0]
        self._check_depth()
        if token == "#":  # noqa: S105  No secret: a sign without its name.
            raise ValueError("a tag has no name")
        self._has_begun = True
        frame = _Frame(token, [], token not in _CLOSERS)
        frames.append(frame)
        return frame

    def _closed(self, token: str) -> _Frame:
        """End the innermost frame; returns the frame to continue in."""
        frames = self._frames
        frame = frames[-1]
        if _CLOSERS.get(frame.opener) != token:
            raise ValueError(f"{token!r} does not end {shown(frame.opener)}")
        if len(frames) == 1:
            frames.append(_Frame(_END, [], is_prefix=True))
            return frames[-1]
        frames.pop()
        outer = frames[-1]
        outer.items.append(frame.items if token == "]" else collection(frame.opener, frame.items))  # noqa: S105  A bracket.
        return self._prefixed(outer) if outer.is_prefix else outer

    def _prefixed(self, frame: _Frame) -> _Frame:
        """Apply a prefix (tag or discard) to its value; returns the frame to continue in."""
        while frame.is_prefix:
            if frame.opener == _END:
                raise ValueError("something follows the end of the history")
            self._frames.pop()
            outer = self._frames[-1]
            if frame.opener == _DISCARD:
                return outer
            outer.items.append({frame.opener: frame.items[0]})
            frame = outer
        return frame


def _and_an_end(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The non-empty blocks, followed by an empty one."""
    yield from filter(None, blocks)
    yield b""


def _before(text: str, place: int) -> str:
    """The text before the token of that number."""
    matches = _TOKEN.finditer(text)
    for _ in range(place):
        next(matches, None)
    match = next(matches, None)
    return text if match is None else text[: match.start(1)]


def _position(text: str, line: int, column: int) -> tuple[int, int]:
    """The line and column after `text`, which began at that line and column."""
    breaks = text.count("\n")
    return line + breaks, len(text) - text.rfind("\n") if breaks else column + len(text)
