"""Reads spoiled Parquet files, and prints each seed before it does: a process of its own, as pyarrow could end it.

Run as `python -m tests.fuzz.spoiled_parquet FIRST_SEED COUNT FOLDER`; the last line is how many were read to their end.
"""

import resource
import sys
from pathlib import Path
from random import Random

from harness.record.formats.parquet.parquet import write_history
from tests.worlds.spoiled_files import BYTES_MAX, history, is_read, spoiled


def main() -> None:
    """All seeds, one after the other. Any exception is for the parent to see."""
    first, count, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    sound = 0
    for seed in range(first, first + count):
        print(seed, flush=True)
        random = Random(seed)
        write_history(history(random), folder)
        path = random.choice(sorted(folder.glob("*.parquet")))
        path.write_bytes(spoiled(path.read_bytes(), random))
        sound += is_read(folder, folder, seed)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < BYTES_MAX
    print(sound)


if __name__ == "__main__":
    main()
