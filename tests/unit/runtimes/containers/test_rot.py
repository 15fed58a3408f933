"""A file of a node that is down changes, is read back, and is all that changes."""

import asyncio
import io
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import cast

import pytest
from docker.models.containers import Container

from harness.core.draw import Draw
from harness.core.errors import DeployError
from harness.runtimes.containers.disks.rot import chosen, pages_of, rot, rotted
from nemesis.faults.bit_rot import PACKAGE
from nemesis.topology import Topology
from tests.unit.runtimes.containers.fake_site import N1, step
from tests.unit.runtimes.containers.stage import Stage

DATA = b"\0" * 4096 + b"x" * 4096 + b"\0" * 4096


class Stopped:
    """A container that has these files, by their full path."""

    def __init__(self, *, is_stubborn: bool = False, **files: bytes) -> None:
        self.files = {PurePosixPath("/data") / name: content for name, content in files.items()}
        self._is_stubborn = is_stubborn

    def get_archive(self, path: str) -> tuple[Iterator[bytes], None]:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, content in self.files.items():
                if name.is_relative_to(path):
                    entry = tarfile.TarInfo(name.relative_to(PurePosixPath(path).parent).as_posix())
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
        return iter([packed.getvalue()]), None

    def put_archive(self, folder: str, packed: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            for entry in tar:
                file = tar.extractfile(entry)
                assert file is not None
                if not self._is_stubborn:
                    self.files[PurePosixPath(folder) / entry.name] = file.read()


def changed(container: Stopped, how: str, place: int) -> str:
    return rot(cast("Container", container), "/data", how=how, place=place).told


def test_one_bit_of_a_page_with_data_is_flipped() -> None:
    container = Stopped(a=DATA, b=b"y" * 10)
    assert changed(container, "flip", 0) == "the bit at byte 6144 is flipped"
    after = container.files[PurePosixPath("/data/a")]
    assert [at for at, (old, new) in enumerate(zip(DATA, after, strict=True)) if old != new] == [6144]
    assert container.files[PurePosixPath("/data/b")] == b"y" * 10


def test_the_end_of_a_file_is_cut_off() -> None:
    container = Stopped(a=b"\0" * 10, b=b"y" * 10)
    assert changed(container, "truncate", 999) == "1 of 10 bytes are gone"
    assert container.files[PurePosixPath("/data/b")] == b"y" * 9


def test_zeros_are_no_data() -> None:
    assert pages_of(DATA) == [1]
    assert pages_of(b"") == []
    assert pages_of(b"\0" * 5000 + b"z") == [1]
    with pytest.raises(DeployError, match="there is no data that could rot"):
        changed(Stopped(a=b"\0" * 9000), "flip", 0)


def test_every_place_chooses_a_page_and_both_ends_are_reached() -> None:
    sizes = [[0, 1], [], [4]]
    assert {chosen(sizes, place) for place in range(1000)} == {(0, 0), (0, 1), (2, 4)}
    assert rotted(b"ab", 1, "flip") == b"ac"


def test_a_change_that_cannot_be_read_back_is_no_effect() -> None:
    with pytest.raises(DeployError, match="does not show the change"):
        changed(Stopped(is_stubborn=True, a=DATA), "flip", 0)


def test_a_node_rots_while_it_is_down_and_starts_with_the_change() -> None:
    async def main() -> None:
        stage = Stage()
        fault = step("rot", "n1", how="flip", place=7)
        await stage.faults.apply(fault)
        assert stage.site.nodes[N1].is_down
        await stage.faults.undo(fault)
        assert not stage.site.nodes[N1].is_down
        assert stage.site.nodes[N1].may_end  # A server may refuse damaged data: that is no failure of the harness.
        effect = await stage.faults.effect(fault)
        assert (effect.count, effect.note) == (1, "in /data/file of n1 flip at 7")

    asyncio.run(main())


def test_a_majority_stays_sound() -> None:
    three = Topology(nodes=tuple((f"n{n}", "member") for n in (1, 2, 3)), links={})
    two = Topology(nodes=(("n1", "member"), ("n2", "member")), links={})
    drawn = [PACKAGE.draw(three, Draw(seed).stream("faults")) for seed in range(50)]
    # A damaged node keeps its damage: steps on several nodes would leave no sound majority in the end.
    assert {strike.targets if strike else () for strike in drawn} == {("n3",)}
    assert {strike.args["how"] for strike in drawn if strike} == {"flip", "truncate"}
    assert PACKAGE.draw(two, Draw(1).stream("faults")) is None
    assert "no majority would be sound" in (PACKAGE.unfit(two) or "")
