"""A stream with a violation, damaged: it is refused, or the violation is still found. It never passes.

Damage here is what no file of the format can have, so that it cannot mend the stream: bytes that JSON forbids, lines
that are no messages, and an end inside a line.
"""

import gzip
from pathlib import Path

import pytest

from harness.core.draw import Draw, Stream
from harness.core.errors import SeamarkError
from seamark import check
from tests.amount import FIRST_SEED, count
from tests.worlds.streams.known import SAMPLES, moved

TEXTS = {"test_decoding", "flink"}  # A value in their lines may hold any bytes: another value is no damage.


def damaged(draw: Stream, lines: list[str], *, is_text: bool) -> bytes:
    """The file with one damage."""
    whole = "\n".join(lines).encode() + b"\n"
    kind = draw.choice(("line", "cut", "gzip") if is_text else ("byte", "line", "cut", "gzip"))
    if kind == "byte":
        at = draw.below(len(whole) - 1)
        return whole[:at] + draw.choice((b"\x01", b"\xff", b"\x00")) + whole[at:]
    if kind == "line":
        at = draw.below(len(lines))
        return "\n".join([*lines[:at], draw.choice(("{", "7 8", "table", '{"a": 1}')), *lines[at:]]).encode() + b"\n"
    if kind == "cut":
        return whole[: len(whole) - draw.between(2, max(2, len(lines[-1]) - 1))]
    packed = gzip.compress(whole)
    return packed[: draw.between(20, len(packed) - 1)]


@pytest.mark.parametrize("name", SAMPLES)
def test_damage_does_not_make_a_red_stream_green(name: str, tmp_path: Path) -> None:
    sample, path, form = SAMPLES[name], tmp_path / "s.jsonl", name
    if sample.is_once:
        form = str(tmp_path / "once.toml")
        Path(form).write_text(f'format = "{name}"\n[stream]\ndelivery = "exactly-once"\n')
    lines = moved(sample)
    for seed in range(FIRST_SEED, FIRST_SEED + count(3)):
        path.write_bytes(damaged(Draw(seed).stream(name), lines, is_text=name in TEXTS))
        assert is_refused_or_red(path, form, sample.key), f"{name} seed {seed}"


def is_refused_or_red(path: Path, form: str, key: str | None) -> bool:
    """True if the file is refused in one line, or something is found in it."""
    try:
        return bool(check(path, stream=form, key=key).findings)
    except SeamarkError as error:
        return "\n" not in str(error)
