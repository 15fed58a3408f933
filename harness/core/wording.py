"""Numbers with nouns, and what is wrong with a value, for people."""

import re
from typing import Final

_EXPECTED: Final = re.compile(r"Expected `([^`]+)`, got `(\w+)`")
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def counted(number: int, noun: str) -> str:
    """The number with its noun: "1 run", "2,000 runs", "3 witnesses"."""
    plural = {"witness": "witnesses", "try": "tries"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


def mistake(error: Exception) -> str:
    """The mistake in a value that a person wrote, by the message of msgspec: "seed must be a whole number"."""
    message, _, path = str(error).partition(" - at `$")
    field = path.rstrip("`").lstrip(".")
    found = _EXPECTED.fullmatch(message)
    if found is None:
        return f"{field}: {message}" if field else message
    wanted = [_KINDS.get(name, name) for name in found[1].split(" | ") if name != "null"]
    return f"{field or 'this'} must be {' or '.join(wanted)}, and is {_KINDS.get(found[2], found[2])}"
