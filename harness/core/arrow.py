"""pyarrow without pandas."""

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """Says that there is no pandas."""

    def find_spec(self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None, /) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def leave_out_pandas() -> None:
    """Let pyarrow look for pandas now, and find none: it would load it for its first array, a third of a second.

    Nothing of ours converts to pandas. PySpark finds it, if it wants to. Raises ImportError without pyarrow.
    """
    import pyarrow as pa  # noqa: PLC0415  A process that needs no pyarrow may load this module.

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    pa.array([0])
    sys.meta_path.remove(finder)
