import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.draw import Draw
from harness.runtimes.simulation.disk import CrashMode, Disk
from tests.unit.runtimes.simulation.small import Text


def disk(seed: int = 0) -> Disk:
    return Disk(Draw(seed).stream("disk"))


def sync(subject: Disk, now_ns: int = 0) -> None:
    subject.complete_sync(subject.begin_sync(now_ns)[1])


def test_an_unsynced_write_is_gone_after_a_crash_and_a_synced_one_is_not() -> None:
    subject = disk()
    subject.append("log", Text(1))
    subject.put("key", Text(2))
    sync(subject)
    subject.append("log", Text(3))
    subject.put("key", Text(4))
    assert subject.crash("lost") == 2
    assert subject.log("log") == (Text(1),)
    assert subject.value("key") == Text(2)


def test_a_write_after_the_sync_was_asked_for_is_not_covered_by_it() -> None:
    subject = disk()
    subject.append("log", Text(1))
    _, upto = subject.begin_sync(0)
    subject.append("log", Text(2))
    subject.complete_sync(upto)
    assert subject.log("log") == (Text(1),)


def test_what_was_never_written_is_empty() -> None:
    assert disk().log("log") == ()
    assert disk().value("key") is None


def test_a_truncated_log_keeps_its_beginning() -> None:
    subject = disk()
    for number in range(5):
        subject.append("log", Text(number))
    subject.truncate("log", 2)
    subject.append("log", Text(9))
    sync(subject)
    assert subject.log("log") == (Text(0), Text(1), Text(9))


def test_a_kept_tail_survives_whole() -> None:
    subject = disk()
    subject.append("log", Text(1))
    assert subject.crash("kept") == 0
    assert subject.log("log") == (Text(1),)


@settings(max_examples=100)
@given(seed=st.integers(0, 1000), synced=st.integers(0, 5), unsynced=st.integers(0, 10))
def test_a_torn_tail_is_a_prefix_that_holds_all_that_was_synced(seed: int, synced: int, unsynced: int) -> None:
    subject = disk(seed)
    for number in range(synced):
        subject.append("log", Text(number))
    sync(subject)
    for number in range(synced, synced + unsynced):
        subject.append("log", Text(number))
    lost = subject.crash("torn")
    survived = synced + unsynced - lost
    assert survived >= synced
    assert subject.log("log") == tuple(Text(number) for number in range(survived))


def test_a_torn_tail_is_of_any_length() -> None:
    lost = set()
    for seed in range(100):
        subject = disk(seed)
        for number in range(3):
            subject.append("log", Text(number))
        lost.add(subject.crash("torn"))
    assert lost == {0, 1, 2, 3}


def test_syncs_complete_in_the_order_in_which_they_were_asked_for() -> None:
    subject = disk()
    times = [subject.begin_sync(now_ns)[0] for now_ns in range(0, 5_000_000, 10_000)]
    assert times == sorted(times)
    assert all(time_ns > now_ns for time_ns, now_ns in zip(times, range(0, 5_000_000, 10_000), strict=True))


@pytest.mark.parametrize("mode", ["lost", "torn", "kept"])
def test_a_disk_goes_on_after_a_crash(mode: CrashMode) -> None:
    subject = disk()
    subject.append("log", Text(1))
    subject.crash(mode)
    before = subject.log("log")
    subject.append("log", Text(2))
    sync(subject)
    assert subject.log("log") == (*before, Text(2))


def test_the_digest_is_of_what_is_durable_only() -> None:
    one, other = disk(), disk()
    one.append("log", Text(1))
    assert one.digest() == other.digest()
    sync(one)
    assert one.digest() != other.digest()
    other.append("log", Text(1))
    sync(other)
    assert one.digest() == other.digest()
