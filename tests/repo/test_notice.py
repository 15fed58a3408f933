"""The notice names every package of an installation whose licence asks for more than its text."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

NOTICE = Path(__file__).resolve().parents[2] / "NOTICE"
ASKING = re.compile(r"GPL|MPL|EPL|Mozilla|General Public")


def needed(name: str) -> Iterator[str]:
    """That package and those it needs, without those of extras and of other platforms."""
    try:
        texts = requires(name) or ()
    except PackageNotFoundError:
        return
    yield name
    for text in texts:
        if "extra ==" not in text:
            yield from needed(re.split(r"[^A-Za-z0-9._-]", text)[0])


def test_every_licence_that_asks_for_more_is_named() -> None:
    asking = set()
    for name in {"psycopg-binary", *needed("seamark")}:
        about = metadata(name)
        stated = [*about.get_all("License-Expression", []), *about.get_all("Classifier", [])]
        if ASKING.search(" ".join(stated)):
            asking.add(name)
    assert {"psycopg", "psycopg-binary"} <= asking
    assert [name for name in sorted(asking) if name not in NOTICE.read_text(encoding="utf-8")] == []
