"""The values of EDN's tokens, and the writing of values as EDN.

JSON cannot express some EDN values. Such a value becomes an object with one name that starts with "#":
a set {"#set": [...]}, a ratio {"#ratio": "1/3"}, a decimal {"#decimal": "1.50"}, a character {"#char": "a"}, a symbol
{"#symbol": "x"}, an integer beyond 64 bits {"#int": "..."}, a float that is not finite {"#float": "##Inf"}, a map
whose keys are not all text {"#map": [[k, v], ...]}, a tagged value {"#inst": "..."}. A keyword is text with its colon,
so that :x and "x" stay two keys. Lists and vectors are lists. The elements of a set and the pairs of such a map come in
an order of their own, as EDN gives them none. Source: github.com/edn-format/edn, read 2026-11-21.
"""

import math
import re
from collections.abc import Sequence
from typing import Final, cast

import msgspec

from harness.core.record import Json

INT_MIN, INT_MAX = -(1 << 63), (1 << 64) - 1  # The range that msgpack can hold.
WORDS: Final[dict[str, Json]] = {"nil": None, "true": True, "false": False}

_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_INTEGER: Final = re.compile(r"([+-]?(?:0|[1-9][0-9]*+))N?")
_FLOAT: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?")
_DECIMAL: Final = re.compile(_FLOAT.pattern + "M")
_RATIO: Final = re.compile(r"[+-]?[0-9]++/[0-9]++")
_NO_NUMBER: Final = ("##Inf", "##-Inf", "##NaN")
_KEYWORD: Final = re.compile(r""":[^\s,;"\[\](){}\\:]++(?::[^\s,;"\[\](){}\\:]++)*+""")
_SYMBOL: Final = re.compile(r"""[^\s,;"\[\](){}\\:#0-9][^\s,;"\[\](){}\\]*+""")
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}
_QUOTED: Final = str.maketrans({meaning: "\\" + letter for letter, meaning in _ESCAPED.items()})
_SUFFIXES: Final = {"#int": "N", "#decimal": "M"}
_CHARACTERS: Final = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "backspace": "\b", "formfeed": "\f"}
_UNICODE: Final = re.compile(r"u[0-9A-Fa-f]{4}")


def atom(token: str) -> Json:
    """The value of a token that is not a bracket, tag, discard or comment. Raises ValueError with the problem."""
    first = token[0]
    if first in "123456789" and len(token) < 19 and token.isascii() and token.isdigit():
        return int(token)  # Most uncached tokens are such numbers: they need no regular expression.
    if first == ":":
        if not _KEYWORD.fullmatch(token):
            raise ValueError(f"{shown(token)} is not a keyword")
        return token
    if first == '"':
        return _text(token)
    if first == "\\":
        return {"#char": _character(token[1:])}
    if first in "+-0123456789" and (number := _number(token)) is not None:
        return number
    if token in _NO_NUMBER:
        return {"#float": token}
    if _SYMBOL.fullmatch(token):
        return {"#symbol": token}
    raise ValueError(f"{shown(token)} is not a value")


def collection(opener: str, items: list[Json]) -> Json:
    """The value of a finished collection.

    Raises ValueError if it is invalid: a map with half a pair, or a duplicate key.
    """
    if opener in {"[", "("}:
        return items
    if opener == "#{":
        return {"#set": _in_order(items)}
    if len(items) % 2:
        raise ValueError("a map ends after a key")
    result: dict[str, Json] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, str) or key[:1] == "#":
            return {"#map": _in_order([items[place : place + 2] for place in range(0, len(items), 2)])}
        result[key] = value
    if len(result) * 2 < len(items):
        raise ValueError("a map has a key twice")
    return result


def _in_order(items: list[Json]) -> list[Json]:
    """The elements in an order that depends on nothing but themselves: a set is one value, however it was written."""
    if all(type(each) is int for each in items):
        return sorted(items, key=lambda each: cast("int", each))
    return sorted(items, key=_ENCODER.encode)


def shown(token: str) -> str:
    """A token for a message, cut if it is long."""
    return repr(token if len(token) <= 40 else token[:37] + "...")


def to_edn(value: Json) -> str:
    """The value as EDN, in one line. Values read from EDN are read back unchanged.

    Text that looks like a keyword is written as a keyword.
    """
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return "##NaN" if math.isnan(value) else "##Inf" if value > 0 else "##-Inf"
        case int() | float():
            return repr(value)
        case str():
            return value if _KEYWORD.fullmatch(value) else _quoted(value)
        case list():
            return f"[{' '.join(map(to_edn, value))}]"
        case dict():
            return _written_special(value) or _written_map(list(value.items()))


def _number(token: str) -> Json:
    if whole := _INTEGER.fullmatch(token):
        if len(token) <= 20 and INT_MIN <= (number := int(whole[1])) <= INT_MAX:
            return number
        return {"#int": whole[1].lstrip("+")}
    if _DECIMAL.fullmatch(token):
        return {"#decimal": token[:-1]}
    if _RATIO.fullmatch(token):
        return {"#ratio": token}
    if not _FLOAT.fullmatch(token):
        return None
    real = float(token)
    if not math.isfinite(real):
        raise ValueError(f"{shown(token)} is too large for a float")
    return real


def _text(token: str) -> str:
    if not _STRING.fullmatch(token):
        raise ValueError("the file ends inside of a string")
    inside = token[1:-1]
    if "\\" not in inside:
        return inside
    unescaped = _ESCAPE.sub(_replaced, inside)
    try:
        # Two halves of a surrogate pair, each escaped, are one character.
        return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("a string has half of a surrogate pair") from None


def _replaced(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    if escape not in _ESCAPED:
        raise ValueError(f"{shown(match[0])} is no escape in a string")
    return _ESCAPED[escape]


def _character(name: str) -> str:
    if len(name) == 1:
        return name
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    if _UNICODE.fullmatch(name) and not 0xD800 <= (code := int(name[1:], 16)) <= 0xDFFF:
        return chr(code)
    raise ValueError(f"{shown(name)} is not a character")


def _written_special(value: dict[str, Json]) -> str | None:
    """The EDN for an object that represents a value JSON cannot express; None if this is a plain object."""
    if len(value) != 1:
        return None
    [(name, content)] = value.items()
    match name, content:
        case "#set", list():
            return f"#{{{' '.join(map(to_edn, content))}}}"
        case "#map", list() if all(isinstance(pair, list) and len(pair) == 2 for pair in content):
            return _written_map([(pair[0], pair[1]) for pair in content if isinstance(pair, list)])
        case "#char", str() if len(content) == 1:
            return f"\\u{ord(content):04x}" if ord(content) < 0x10000 else None
        case "#symbol" | "#ratio" | "#int" | "#decimal" | "#float", str():
            token = content + _SUFFIXES.get(name, "")
            return token if _is_atom(token, value) else None
        case _:
            return f"{name} {to_edn(content)}" if name[:1] == "#" and _SYMBOL.fullmatch(name[1:]) else None


def _is_atom(token: str, value: Json) -> bool:
    try:
        return bool(token) and token not in WORDS and atom(token) == value
    except ValueError:
        return False


def _written_map(pairs: Sequence[tuple[Json, Json]]) -> str:
    return "{" + ", ".join(f"{to_edn(key)} {to_edn(value)}" for key, value in pairs) + "}"


def _quoted(text: str) -> str:
    return '"' + text.translate(_QUOTED) + '"'
