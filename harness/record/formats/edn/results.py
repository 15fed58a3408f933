"""The verdict of Jepsen itself, in the results.edn beside a history of its store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.core.record import Json
from harness.record.formats.edn.forms import one_form

_NAME: Final = "results.edn"
_MOST: Final = 16 << 20
_SHOWN: Final = 5
_VALID: Final = ":valid?"


def note_of_results(folder: Path) -> str | None:
    """What Jepsen decided, and which of its checkers found something; None if that cannot be read."""
    path = folder / _NAME
    try:
        if not path.is_file() or path.stat().st_size > _MOST:
            return None
        results = one_form(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(results, dict) or _VALID not in results:
        return None
    found = list(dict.fromkeys(_broken("", results)))[:_SHOWN]
    why = f", by {', '.join(found)}" if found else ""
    return f"Jepsen's own {_NAME} has :valid? {str(results[_VALID]).lower()}{why}"


def _broken(name: str, results: dict[str, Json]) -> Iterator[str]:
    """The names of the innermost checkers that found something, with the anomalies that they name."""
    inner = [(key, each) for key, each in results.items() if isinstance(each, dict) and each.get(_VALID) is False]
    for key, each in inner:
        yield from _broken(key.lstrip(":"), each)
    if not inner and name and results.get(_VALID) is False:
        types = results.get(":anomaly-types")
        names = [str(each).lstrip(":") for each in types] if isinstance(types, list) else []
        yield f"{name} ({', '.join(names[:_SHOWN])})" if names else name
