"""The hash of all code that decides what a run records, and its verdict."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

import checkers
import harness
import nemesis
from harness.scenario.consent import Code
from harness.scenario.registry import package_of

ROOMS: Final = ("core", "interpreter", "judging", "record", "run", "runtimes", "scenario")  # Of harness.


def code_digest(codes: Iterable[Code]) -> str:
    """The hash of the code of those clusters, and of all that carries out and judges their runs."""
    root = Path(harness.__path__[0])
    packages = {package_of(code) for code in codes}
    folders = [*(Path(each.__path__[0]) for each in (checkers, nemesis)), *(root / room for room in ROOMS)]
    digest = sha256()
    for place in (*folders, *sorted(packages)):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else (place,):
            digest.update(path.relative_to(place.parent).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
