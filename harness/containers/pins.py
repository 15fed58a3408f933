"""Digests of published images: which ones a person pins, and which ones the engine has got.

A tag may name another image tomorrow; a digest names one for ever, and the engine verifies what it pulls by it. Seamark
brings no digests of its own: whoever builds on published images pins those that they trust.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

import docker

from harness.core.errors import ScenarioError

VARIABLE: Final = "SEAMARK_PINS"  # "debian:bookworm-slim@sha256:... redis:7@sha256:..."
_PIN: Final = re.compile(r"(?P<reference>[^@\s]+)@sha256:[0-9a-f]{64}")


def pinned(reference: str) -> str:
    """The reference with the digest that the environment pins it to; as it stands, if there is none.

    Raises ScenarioError if the environment names something that is no digest.
    """
    return _pins(os.environ.get(VARIABLE, "")).get(reference, reference)


def _pins(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for word in text.split():
        match = _PIN.fullmatch(word)
        if match is None:
            raise ScenarioError(f"{VARIABLE}: {word!r} is no pin: write name:tag@sha256: and 64 hexadecimal digits")
        if found.setdefault(match["reference"], word) != word:
            raise ScenarioError(f"{VARIABLE} pins {match['reference']} twice, to different digests")
    return found


def identity_of(engine: docker.DockerClient, reference: str) -> str:
    """An image that the engine has, by the digest under which its registry gave it, or else by its id there."""
    image = engine.images.get(reference)
    name, _, wanted = reference.partition("@")
    folder, slash, last = name.rpartition("/")  # A colon in the folder is that of a registry's port.
    repository = f"{folder}{slash}{last.partition(':')[0]}"
    pairs = (str(each).partition("@") for each in image.attrs.get("RepoDigests") or ())
    digests = sorted(digest for each, _, digest in pairs if each == repository)
    if not digests:
        return f"{name} (of no registry; its id is {image.id})"
    return f"{name}@{wanted if wanted in digests else digests[0]}"
