"""Starts pyarrow and numpy without pandas and without their documentation, which Seamark does not use."""

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """Says that there is no pandas."""

    def find_spec(self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None, /) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


class _NoSections(dict[str, list[str]]):
    """The sections of a documentation: none."""

    def __init__(self, _text: str) -> None:
        super().__init__()

    def __missing__(self, _name: str) -> list[str]:
        return []


def leave_out_documentation() -> None:
    """Start pyarrow.compute without the options of its functions in `help`, and numpy without documentation.

    pyarrow would parse the documentation of a hundred options at each start: 0.015 CPU s, a twentieth of a small check.
    numpy would attach texts to all that it has in C: 0.015 CPU s more. Call this before either of them is loaded.
    """
    for name in ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars"):
        sys.modules.setdefault(name, ModuleType(name))
    parser = ModuleType("pyarrow.vendored.docscrape")
    parser.NumpyDocString = _NoSections  # type: ignore[attr-defined]  # The one name that is used of it.
    sys.modules[parser.__name__] = parser


def leave_out_pandas() -> None:
    """Let pyarrow look for pandas now, and find none: it would load it for its first array, a third of a second.

    Nothing of ours converts to pandas. PySpark finds it, if it wants to. Raises ImportError without pyarrow.
    """
    import pyarrow as pa  # noqa: PLC0415  A process that needs no pyarrow may load this module.

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    pa.array([0])
    sys.meta_path.remove(finder)
