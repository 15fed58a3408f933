"""Durable state: what was written is there after a kill, what was synced after a crash, and damage is refused."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.draw import Draw
from harness.core.machine import Message
from harness.runtimes.host.control import Ready
from harness.runtimes.host.frames import codec_of
from harness.runtimes.host.storage import (
    CRASH_MODE_FILE,
    MAGIC,
    SIDECAR_FILE,
    STATE_FILE,
    Recovered,
    Storage,
    StorageDamaged,
)
from tests.unit.runtimes.host.nodes import ROOT, SCRIPTED, Nodes, run, step
from tests.unit.runtimes.host.scripted import Note

CODEC = codec_of(SCRIPTED)
State = tuple[dict[str, list[int]], dict[str, int]]


class Write(NamedTuple):
    """A write; `sync` has no name."""

    what: str
    name: str = ""
    number: int = 0


KINDS = st.sampled_from(["append", "append", "truncate", "put", "sync"])
WRITES = st.lists(st.builds(Write, KINDS, st.sampled_from("xy"), st.integers(0, 5)), max_size=30)
MEMORY = next(iter(Path("/dev").glob("shm")), None)  # A folder in memory, if there is one: syncs cost nothing there.


def recovered(folder: Path, seed: int = 0) -> tuple[Storage, State, int]:
    """The storage of a new life, what it holds, and how many records were lost."""
    storage = Storage(folder)
    durable, lost = storage.recover(CODEC, Draw(seed).stream("storage"))
    return storage, state_of(durable), lost


def state_of(durable: Recovered) -> State:
    logs = {name: [number_of(record) for record in durable.log(name)] for name in "xy"}
    values = {name: number_of(value) for name in "xy" if (value := durable.value(name)) is not None}
    return logs, values


def number_of(record: Message) -> int:
    assert isinstance(record, Note)
    return record.number


def carry_out(storage: Storage, writes: list[Write]) -> None:
    for what, name, number in writes:
        match what:
            case "append":
                storage.append(name, Note(number))
            case "truncate":
                storage.truncate(name, number)
            case "put":
                storage.put(name, Note(number))
            case "sync":
                storage.sync()


def oracle(writes: list[Write]) -> State:
    """What these writes come to."""
    logs: dict[str, list[int]] = {"x": [], "y": []}
    values: dict[str, int] = {}
    for what, name, number in writes:
        match what:
            case "append":
                logs[name].append(number)
            case "truncate":
                logs[name] = logs[name][:number]
            case "put":
                values[name] = number
    return logs, values


def in_folder(law: Callable[[Path], None]) -> None:
    with TemporaryDirectory(dir=MEMORY) as folder:
        law(Path(folder))


@settings(max_examples=60)
@given(WRITES, st.integers(0, 40))
def test_a_kill_in_mid_write_leaves_the_writes_before_it(writes: list[Write], bytes_cut: int) -> None:
    def law(folder: Path) -> None:
        storage, _, _ = recovered(folder)
        ends = [0]
        for write in writes:
            carry_out(storage, [write])
            ends.append((folder / STATE_FILE).stat().st_size)
        synced = max([end for end, write in zip(ends[1:], writes, strict=True) if write.what == "sync"], default=0)
        size = max(ends[-1] - bytes_cut, synced, len(MAGIC))
        with (folder / STATE_FILE).open("r+b") as file:
            file.truncate(size)
        whole = [write for end, write in zip(ends[1:], writes, strict=True) if end <= size]
        assert recovered(folder)[1] == oracle(whole)
        assert recovered(folder)[1] == oracle(whole)

    in_folder(law)


@settings(max_examples=60)
@given(WRITES, st.sampled_from(["lost", "torn", "kept"]), st.integers(0, 100))
def test_a_crash_loses_nothing_that_was_synced_and_what_its_mode_says(
    writes: list[Write], mode: str, seed: int
) -> None:
    def law(folder: Path) -> None:
        carry_out(recovered(folder)[0], writes)
        (folder / CRASH_MODE_FILE).write_text(f"{mode}\n")
        _, state, lost = recovered(folder, seed)
        assert not (folder / CRASH_MODE_FILE).exists()
        records = [write for write in writes if write.what != "sync"]
        last_sync = max([place for place, write in enumerate(writes) if write.what == "sync"], default=-1)
        unsynced = len([write for write in writes[last_sync + 1 :] if write.what != "sync"])
        assert state == oracle(records[: len(records) - lost])
        assert 0 <= lost <= unsynced
        if mode != "torn":
            assert lost == (unsynced if mode == "lost" else 0)
        # What was handed to the machine is durable from then on.
        (folder / CRASH_MODE_FILE).write_text("lost")
        assert recovered(folder)[1:] == (state, 0)

    in_folder(law)


def test_torn_crashes_differ_and_may_end_in_mid_record(tmp_path: Path) -> None:
    lost: dict[int, None] = {}
    for seed in range(30):
        folder = tmp_path / str(seed)
        carry_out(recovered(folder)[0], [Write("append", "x", number) for number in range(4)])
        (folder / CRASH_MODE_FILE).write_text("torn")
        lost[recovered(folder, seed)[2]] = None
    assert sorted(lost) == [0, 1, 2, 3, 4]


def test_lives_are_counted(tmp_path: Path) -> None:
    assert [recovered(tmp_path)[0].life for _ in range(3)] == [1, 2, 3]


@given(st.integers(0), st.integers(1, 255))
def test_a_changed_byte_is_never_taken_for_what_was_written(place: int, change: int) -> None:
    def law(folder: Path) -> None:
        carry_out(recovered(folder)[0], [Write("append", "x", number) for number in (*range(3), 300)])
        content = bytearray((folder / STATE_FILE).read_bytes())
        content[place % len(content)] ^= change
        (folder / STATE_FILE).write_bytes(content)
        with pytest.raises(StorageDamaged, match=STATE_FILE):
            recovered(folder)

    in_folder(law)


def test_damage_names_the_record_and_the_byte(tmp_path: Path) -> None:
    carry_out(recovered(tmp_path)[0], [Write("append", "x", 1), Write("append", "x", 2)])
    content = bytearray((tmp_path / STATE_FILE).read_bytes())
    content[-1] ^= 1
    (tmp_path / STATE_FILE).write_bytes(content)
    with pytest.raises(StorageDamaged, match=r"record 1 at byte \d+ is damaged: its payload does not check"):
        recovered(tmp_path)


def test_a_file_that_lacks_what_was_synced_is_damaged(tmp_path: Path) -> None:
    carry_out(recovered(tmp_path)[0], [Write("append", "x", 1), Write("sync")])
    with (tmp_path / STATE_FILE).open("r+b") as file:
        file.truncate(len(MAGIC) + 3)
    with pytest.raises(StorageDamaged, match=r"it is cut short, and \d+ bytes were synced"):
        recovered(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        (STATE_FILE, b"something else", "its first line differs"),
        (SIDECAR_FILE, b"something else", "does not check"),
        (CRASH_MODE_FILE, b"gone\n", "must say lost, torn or kept"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    recovered(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StorageDamaged, match=why):
        recovered(tmp_path)


def test_sigkill_at_any_moment_leaves_what_was_persisted(tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-m", "tests.unit.runtimes.host.killed", str(tmp_path), "40"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert killed.returncode == 0, killed.stderr
    moments = killed.stdout.split()
    assert len(moments) == 40
    assert len(dict.fromkeys(moments)) > 10, "it was always killed at the same moment"


def test_a_killed_node_has_its_state_again(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        for mode, logged, lost in (("kept", [1, 2], 0), ("lost", [1], 1)):
            nodes.folder = tmp_path / mode
            await nodes.ready("a")
            client = await nodes.client("a")
            await client.do(step("append", "log", 1), step("put", "key", 3), step("sync", "", 8))
            await client.do(step("append", "log", 2), step("answer"))
            nodes.kill("a")
            if mode == "lost":
                (nodes.folder / "a" / CRASH_MODE_FILE).write_text(mode)
            (control,) = await nodes.ready("a")
            assert (await control.first(Ready)).lost_records == lost
            seen = await (await nodes.client("a")).seen()
            assert seen.logs["log"] == logged
            assert seen.values == {"key": 3}
            nodes.kill("a")

    run(tmp_path, scenario, ["a"])
