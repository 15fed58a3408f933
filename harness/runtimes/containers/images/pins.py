"""Digests of published images: those that the user pins, and those that the engine has.

A tag may name another image tomorrow; a digest always names the same one, and the engine verifies pulls by it. Seamark
has no digests of its own: users who build on published images pin those that they trust.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

import docker

from harness.core.errors import ScenarioError

VARIABLE: Final = "SEAMARK_PINS"  # Its value: "debian:bookworm-slim@sha256:... redis:7@sha256:..."
_PIN: Final = re.compile(r"(?P<reference>[^@\s]+)@sha256:[0-9a-f]{64}")


def pinned(reference: str) -> str:
    """The reference with the digest that the environment pins it to; unchanged if there is none.

    Raises ScenarioError if the environment names an invalid digest.
    """
    return _pins(os.environ.get(VARIABLE, "")).get(reference, reference)


def _pins(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for word in text.split():
        match = _PIN.fullmatch(word)
        if match is None:
            raise ScenarioError(f"{VARIABLE}: {word!r} is not a pin: write name:tag@sha256: and 64 hexadecimal digits")
        if found.setdefault(match["reference"], word) != word:
            raise ScenarioError(f"{VARIABLE} pins {match['reference']} twice, to different digests")
    return found


def identity_of(engine: docker.DockerClient, reference: str) -> str:
    """The identity of an image that the engine has: its registry's digest, or else its local id."""
    image = engine.images.get(reference)
    name, _, wanted = reference.partition("@")
    folder, slash, last = name.rpartition("/")  # A colon in the folder belongs to a registry's port.
    repository = f"{folder}{slash}{last.partition(':')[0]}"
    pairs = (str(each).partition("@") for each in image.attrs.get("RepoDigests") or ())
    digests = sorted(digest for each, _, digest in pairs if each == repository)
    if not digests:
        return f"{name} (of no registry; its id is {image.id})"
    return f"{name}@{wanted if wanted in digests else digests[0]}"
