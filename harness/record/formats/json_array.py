"""The elements of one large JSON array, one at a time.

For a file of any size, memory holds one block and one element.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

ELEMENT_MAX: Final = 16 << 20
# A whole string, the beginning of one, or a bracket. Possessive: it never backtracks over megabytes.
_SIGN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{}]', re.DOTALL)
_FIRST_GAP: Final = re.compile(rb"\s*")
_GAP: Final = re.compile(rb"\s*,\s*")


class BadJson(Exception):
    """An error in JSON text: the problem, with its line or element, from 1."""


def array_elements(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The elements, as text, of the array in the blocks: objects or arrays, since no operation is a number.

    Raises BadJson if the blocks are not such an array, or an element exceeds ELEMENT_MAX. The content of elements is
    not checked.
    """
    text, number, is_over = b"", 0, False
    search, blocks = _Search(), iter(blocks)
    for block in blocks:
        text = (text + block).lstrip()
        if text:
            break
    if text[:1] != b"[":
        raise BadJson("line 1: it is no JSON array")
    text = text[1:]
    for block in _and_an_empty_one(blocks):
        text += block
        done = 0
        for begin, end in [] if is_over else search.spans(text):
            is_over = end < 0
            between = _GAP if number and not is_over else _FIRST_GAP
            if not between.fullmatch(text, done, begin):
                raise BadJson(f"element {number + 1}: it is not an object, or no comma is before it")
            done = begin + 1 if is_over else end
            if not is_over:
                number += 1
                yield text[begin:end]
        text = text[done:]
        search.forget(done)
        if is_over and not (text.isspace() or not text):
            raise BadJson(f"element {number}: something follows the end of the array")
        if len(text) > ELEMENT_MAX:
            raise BadJson(f"element {number + 1}: it is larger than {ELEMENT_MAX >> 20} MiB, the limit")
    if not is_over:
        raise BadJson(f"element {number + 1}: the file ends before the array does")


class _Search:
    """A search for whole elements in a growing text. It reads each byte once, unless a string is still open."""

    def __init__(self) -> None:
        self._depth = self._begin = self._at = 0

    def spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        """The (begin, end) of the next whole elements; at the bracket that ends the array the end is -1."""
        for match in _SIGN.finditer(text, self._at):
            match match[0]:
                case b"[" | b"{":
                    self._begin = self._begin if self._depth else match.start()
                    self._depth += 1
                case b"]" | b"}" if self._depth == 0:
                    yield match.start(), -1
                    return
                case b"]" | b"}":
                    self._depth -= 1
                    if self._depth == 0:
                        yield self._begin, match.end()
                case b'"':  # The rest of this string is in the next block.
                    self._at = match.start()
                    return
        self._at = len(text)

    def forget(self, count: int) -> None:
        """Account for `count` bytes removed from the beginning of the text."""
        self._at -= count
        self._begin -= count


def _and_an_empty_one(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """An empty block, then the blocks, so that the text read so far is searched even if nothing follows."""
    yield b""
    yield from blocks
