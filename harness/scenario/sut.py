"""The system under test by its release: a name, a version, a commit and the digest of its image."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from harness.core.errors import ScenarioError, known

FIELDS: Final = ("name", "version", "commit", "image")
TEXT_MAX: Final = 200
_DIGEST: Final = re.compile("(sha256:[0-9a-f]{12})[0-9a-f]{52}")  # In words its beginning is enough.


def sut_of(texts: Sequence[str] | None) -> dict[str, str]:
    """The release as given on a command line, each part as "NAME=VALUE". Raises ScenarioError for any other text."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (equals and value):
            raise ScenarioError(f"--sut {text}: write NAME=VALUE, as in --sut version=8.4.1")
        found[name] = value
    return required(found)


def required(sut: Mapping[str, str]) -> dict[str, str]:
    """The same release. Raises ScenarioError for a part that does not exist, or that is too long."""
    for name, value in sut.items():
        known(name, FIELDS, "part of sut")
        if len(value) > TEXT_MAX:
            raise ScenarioError(f"sut: {name} has {len(value)} characters, the limit is {TEXT_MAX}")
    return dict(sut)


def release(sut: Mapping[str, str]) -> str:
    """The release in words: "MySQL Cluster 8.4.1, commit 1f3a". Empty if nothing is declared."""
    sut = {name: _DIGEST.sub(r"\1", value) for name, value in sut.items()}
    first = " ".join(sut[name] for name in ("name", "version") if name in sut)
    return ", ".join(filter(None, (first, *(f"{name} {sut[name]}" for name in ("commit", "image") if name in sut))))
