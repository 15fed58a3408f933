"""Parts of a history, written as histories."""

from pathlib import Path

from checkers.history.generation_files import Part, is_whole, parts, write_part
from checkers.history.generations import restarts
from checkers.history.transactions import Append, Operation, Read, chunks, read_chunk, to_operations
from harness.core.columns import INFO, NEVER
from tests.worlds.epoch_cases import BITS, Story

X = ord("x")


def part_of(history: Path, folder: Path, part: Part) -> list[Operation]:
    folder.mkdir()
    write_part(history, folder, part)
    return [operation for chunk in chunks(folder) for operation in to_operations(read_chunk(chunk))]


def test_a_generation_keeps_indexes_ends_and_reads(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 0))
    story.op("ax2 rx12", (8, 0))
    lost = story.begin("ax3")
    story.restart(7, (9, 0))
    story.op("rx1", (9, 0))
    story.end(lost, None, None, "info")
    history = story.write(tmp_path)
    first, second = (part_of(history, tmp_path / str(part.generation), part) for part in parts(restarts(history), BITS))
    assert [(op.index, op.outcome, op.after) for op in first] == [(0, 0, 1), (1, 0, 2), (2, INFO, NEVER)]
    assert first[1].mops == (Append(X, 2), Read(X, (1, 2)))
    assert [op.index for op in second] == [0, 2, 3]
    assert second[2].mops == (Read(X, (1,)),)


def test_an_unclear_operation_has_no_end(tmp_path: Path) -> None:
    story = Story()
    unknown = story.begin("rx")
    story.restart(7, (9, 0))
    story.end(unknown, "rx", None)
    history = story.write(tmp_path)
    for part in parts(restarts(history), BITS):
        (operation,) = part_of(history, tmp_path / str(part.generation), part)
        assert (operation.outcome, operation.after) == (INFO, NEVER)


def test_an_empty_generation_can_be_read(tmp_path: Path) -> None:
    story = Story()
    story.restart(0, (1, 0))
    story.op("ax1", (1, 0))
    history = story.write(tmp_path)
    found = [part_of(history, tmp_path / str(part.generation), part) for part in parts(restarts(history), BITS)]
    assert [len(operations) for operations in found] == [0, 1]


def test_without_restarts_or_bits_there_is_one_part_and_it_is_whole(tmp_path: Path) -> None:
    story = Story()
    story.restart(7, (9, 0))
    known = restarts(story.write(tmp_path))
    assert [is_whole(part) for part in parts((), BITS)] == [True]
    assert [is_whole(part) for part in parts(known, None)] == [True]
    assert [is_whole(part) for part in parts(known, BITS)] == [False, False]
