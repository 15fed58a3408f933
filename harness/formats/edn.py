"""EDN, Clojure's notation, read in blocks: whatever the size of a file, memory holds a block and one form.

JSON has no words for some of what EDN can say. Such a value becomes an object with one name that starts with "#":
a set {"#set": [...]}, a ratio {"#ratio": "1/3"}, a decimal {"#decimal": "1.50"}, a character {"#char": "a"}, a symbol
{"#symbol": "x"}, an integer beyond 64 bits {"#int": "..."}, a map whose keys are not all text {"#map": [[k, v], ...]},
a tagged value {"#inst": "..."}, and what is no finite number {"#float": "##Inf"}. A keyword is text with its colon, so
that :x and "x" stay two keys. Lists and vectors are lists.
Source: github.com/edn-format/edn, read 2026-11-21.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, cast

import msgspec

from harness.core.errors import HistoryError
from harness.core.record import Json

NESTING_MAX: Final = 64
FORM_MAX: Final = 16 << 20  # Characters of one top-level form, and of one string.
_BLOCK: Final = 1 << 20  # Bytes read at once.
_ATOMS_MAX: Final = 100_000  # Tokens whose value is remembered; histories repeat theirs.

# Every quantifier is possessive: a broken file must not make the expression go back over megabytes.
_TOKEN: Final = re.compile(
    r"""[\s,]*+(                        # Commas are white space.
        "[^"\\]*+(?:\\.[^"\\]*+)*+"?+   # A string; without its second quote, it is not all here yet.
      | ;[^\n]*+
      | [\[\](){}]
      | \#[_{]
      | \\(?:[A-Za-z][^\s,;"\[\](){}\\]*+|.)
      | [^\s,;"\[\](){}\\]++
      | .
    )""",
    re.VERBOSE | re.DOTALL,
)
_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*)N?")
_FLOAT: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?M?")
_RATIO: Final = re.compile(r"[+-]?[0-9]+/[0-9]+")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}
_CHARACTERS: Final = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "backspace": "\b", "formfeed": "\f"}
_CLOSERS: Final = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_WORDS: Final[dict[str, Json]] = {"nil": None, "true": True, "false": False}
_MISSING: Final = object()


def read_edn(path: Path) -> Iterator[Json]:
    """The forms of a file in order; those inside, if the file is one list or vector.

    Raises HistoryError that names file, line and column where it is no EDN, or passes a limit.
    """
    parser = _Parser()
    try:
        with path.open("rb") as file:
            yield from _forms(parser, iter(lambda: file.read(_BLOCK), b""))
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    except _BadEdn as bad:
        raise HistoryError(f"{path}, line {bad.line}, column {bad.column}: {bad.problem}") from None


def parse_edn(text: str) -> list[Json]:
    """The forms of a text, as `read_edn` gives them. Raises HistoryError that names line and column."""
    try:
        return list(_forms(_Parser(), iter([text.encode()])))
    except _BadEdn as bad:
        raise HistoryError(f"line {bad.line}, column {bad.column}: {bad.problem}") from None


class _BadEdn(Exception):
    """What is wrong, and where; line and column count from 1."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


class _Frame(msgspec.Struct):
    """A collection, tag or discard that is still open. The outermost frame has no opener."""

    opener: str
    items: list[Json]

    @property
    def is_prefix(self) -> bool:
        """Does it end with the next value: a tag, or a discard?"""
        return self.opener.startswith("#") and self.opener != "#{"


class _Parser:
    """A stack of open frames. `place` is the number of the token that it looks at, for messages."""

    def __init__(self) -> None:
        self.place = 0
        self._frames = [_Frame("", [])]
        self._atoms: dict[str, Json] = dict(_WORDS)
        self._is_wrapped = False  # The file is one vector, whose elements are the forms.
        self._is_over = False

    def feed(self, tokens: Sequence[str]) -> list[Json]:
        """Take tokens; the forms that are finished now."""
        frame = self._frames[-1]
        atoms = self._atoms
        for self.place, token in enumerate(tokens):
            value = atoms.get(token, _MISSING)
            if value is _MISSING:
                first = token[0]
                if first == ";":
                    continue
                if token in _CLOSERS or (first == "#" and token != "#" and not token.startswith("##")):
                    frame = self._open(token)
                    continue
                if first in ")]}":
                    if len(self._frames) == 1:
                        self._end(token)
                        continue
                    value = self._close(token)
                    frame = self._frames[-1]
                else:
                    value = _atom(token)
                    if len(atoms) < _ATOMS_MAX:
                        atoms[token] = value
            frame.items.append(cast("Json", value))
            if frame.is_prefix if frame.opener else self._is_over:
                frame = self._after_prefix(frame)
        return self._take()

    def finish(self) -> None:
        """Raises _BadEdn if something is still open."""
        if len(self._frames) > 1 or (self._is_wrapped and not self._is_over):
            opener = self._frames[-1].opener or "["
            raise _BadEdn(f"the file ends inside of {opener}")

    @property
    def is_between_forms(self) -> bool:
        """Is no form half read?"""
        return len(self._frames) == 1

    def _open(self, token: str) -> _Frame:
        if self._is_over:
            raise _BadEdn("something follows the end of the history")
        is_first = len(self._frames) == 1 and not self._frames[0].items and not self._is_wrapped
        if is_first and token in "[(" and not self._atoms.get("", False):
            self._is_wrapped = True
            return self._frames[0]
        if len(self._frames) > NESTING_MAX:
            raise _BadEdn(f"values are nested deeper than {NESTING_MAX}, the limit")
        self._frames.append(_Frame(token, []))
        return self._frames[-1]
