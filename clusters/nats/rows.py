"""The storage of lists: the stream has one message for each element, and one subject for each list."""

from typing import Final

from clusters.servers.values import decoded, encoded
from harness.core.record import Json

STREAM: Final = "seamark"
_PREFIX: Final = "log."
SUBJECTS: Final = f"{_PREFIX}>"
_OTHER: Final = "x"  # The beginning of the subject's end, for keys that are no numbers.


def subject_of(key: Json) -> str:
    """The subject of a list."""
    return f"{_PREFIX}{key}" if isinstance(key, int) else f"{_PREFIX}{_OTHER}{encoded(key).hex()}"


def key_of(subject: str) -> Json:
    """The key of the list with that subject. A damaged subject is a text that no client used."""
    name = subject.removeprefix(_PREFIX)
    if name.startswith(_OTHER):
        try:
            return decoded(bytes.fromhex(name.removeprefix(_OTHER)))
        except ValueError:
            return f"damaged: {subject}"
    return decoded(name.encode())
