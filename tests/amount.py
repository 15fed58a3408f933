"""How much is left to chance: a little in `make test`, as much as is asked for in the long mode (CONTRIBUTING.md).

SEAMARK_FUZZ_COUNT is how many inputs of each kind every test draws. SEAMARK_FUZZ_SEED is the seed of the first where
seeds are counted up; hypothesis draws its own, and takes --hypothesis-seed.
"""

import os

FIRST_SEED = int(os.environ.get("SEAMARK_FUZZ_SEED", "0"))


def count(default: int) -> int:
    """As many as were asked for, or else what `make test` has time for."""
    return int(os.environ.get("SEAMARK_FUZZ_COUNT", default))
