"""What the plugin of pytest and `seamark.test` agree on."""

from pathlib import Path
from typing import Final, NamedTuple

MARK: Final = "seamark_test"  # The attribute of a marked function.
FIXTURE: Final = "seamark_order"


class Order(NamedTuple):
    """The run that a test is to make: its seed, and where it is kept if it fails."""

    seed: int
    store: Path
