"""Names that the pytest plugin and `seamark.test` share."""

from pathlib import Path
from typing import Final, NamedTuple

MARK: Final = "seamark_test"  # The attribute of a marked function.
FIXTURE: Final = "seamark_order"


class Order(NamedTuple):
    """The run that a test must make: its seed, and the store that keeps it if it fails."""

    seed: int
    store: Path
