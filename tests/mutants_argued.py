"""Mutants that no test can kill, and why: by file and change, as tests/mutants.py prints it."""

from typing import Final

COST: Final = "only the cost differs"
ARGUED: Final[dict[tuple[str, str], str]] = {
    (
        "checkers/kernels.py",
        "np.cumsum(is_first) - 1  ->  np.cumsum(is_first)",
    ): "groups are numbered from 1: they are at most half as many as rows, so that there is room",
    (
        "checkers/versions.py",
        "float(width.sum(dtype=np.float64)) <= _TABLE_SPARSITY * code.size + 1024  ->  "
        "float(width.sum(dtype=np.float64)) < _TABLE_SPARSITY * code.size + 1024",
    ): COST,
    (
        "checkers/versions.py",
        "self.longest >= 0  ->  self.longest > 0",
    ): "list 0 begins at 0, as what is not there does",
    ("checkers/versions.py", "self.slots.count + 1  ->  self.slots.count + 2"): "nobody asks for the slot between",
}
