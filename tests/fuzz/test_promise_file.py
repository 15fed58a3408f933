"""Spoiled promise files: each is read, or refused in one line."""

from pathlib import Path
from random import Random

from harness.core.errors import ScenarioError
from harness.run.checking import promises_in
from tests.amount import FIRST_SEED
from tests.worlds.spoiled_files import COUNT, spoiled

SOUND = b"""\
model = "serializable"
[stream]
closed = "<="
cut = "position"
position = "revision"
is_position_unique = true
system_events = ["reshuffle"]
[bounds]
stall_ns = 5_000_000_000
groups = [["n1", "n2"], ["n3"]]
[[promise]]
id = "WATCH-1"
text = "No event comes late."
source = "the manual"
forbids = ["late-event", "G1c"]
is_purpose = false
"""


def test_a_spoiled_promise_file_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    path, read = tmp_path / "promises.toml", 0
    path.write_bytes(SOUND)
    assert len(promises_in(path).promises) == 2
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        path.write_bytes(spoiled(SOUND, Random(seed)))
        result = refusal(path)
        read += result is None
        assert result is None or (len(result) < 1000 and "\n" not in result), f"seed {seed}: {result!r}"
    assert 0 < read < COUNT


def refusal(path: Path) -> str | None:
    """Why the file is refused; None if it is not. Anything but a ScenarioError fails the test."""
    try:
        promises_in(path)
    except ScenarioError as error:
        return str(error)
    return None
