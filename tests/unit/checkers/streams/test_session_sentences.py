"""What findings about starts, ends, logs and wholes say."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from checkers.history.names import Forms, Names
from checkers.streams.catalogue import RULES
from checkers.streams.check import finding
from checkers.streams.examples import Example, Sight
from checkers.streams.rule import OfKeys, OfLog
from checkers.streams.rules.logs.real_time_order import Reversal, reversal_finding
from harness.core.columns import NEVER, ROW, TOMBSTONE
from harness.core.verdict import Finding
from tests.worlds.streams.cases import outcome
from tests.worlds.streams.language import key_of

RESUMED = "s1/1 open@0 x=1@2 x=2@4 s1/2 open@2 "
THREE = "ok@2 x=1; ok@4 x=2; ok@6 x=3"


def name(number: int) -> str:
    """Keys by their letters, which no value here is as high as."""
    return chr(ord("a") + number) if key_of("x") <= number <= key_of("z") else str(number)


def told(log: str, source: str, anomaly: str, **changes: object) -> Finding:
    (found,) = [each for each in outcome(log, source, **changes).examples if each.anomaly == anomaly]
    return finding(found, Names(name))


@pytest.mark.parametrize(
    ("anomaly", "log", "source", "changes", "sentence"),
    [
        (
            "lost-acknowledged",
            "s1/1 open@0 x=1@2 x=2@4 checkpoint@4 s1/2 open@2",
            THREE,
            {"acknowledged": "held"},
            "s1 acknowledged position 4, and began session 2 with what it holds up to position 2: value 2 of key x at "
            "position 4 (operation 1) is gone, and the source need not send it again.",
        ),
        (
            "resume-hole",
            RESUMED + "w@4",
            THREE,
            {"wm_scope": "subscriber"},
            "s1 began at position 2 in session 2, but value 2 of key x at position 4 (operation 1) was left out: "
            "watermark 4 came.",
        ),
        (
            "resume-hole",
            RESUMED + "x=3@6",
            THREE,
            {},
            "s1 began at position 2 in session 2, but value 2 of key x at position 4 (operation 1) was left out: "
            "value 3 of key x at position 6 came.",
        ),
        (
            "resume-hole",
            "s1/1 open@0 x=1@2 s1/2 open@5",
            THREE,
            {"sessions": "joined"},
            "s1 opened session 2 at position 5, above value 2 of key x at position 4 (operation 1), which session 1 "
            "had not received.",
        ),
        (
            "early-event",
            "open@0 x=1@1 x=2@2",
            "ok@1~90~95 x=1; ok@2~105~106 x=2",
            {},
            "Value 2 of key x at position 2 reached s1 before operation 1, which wrote it, was invoked.",
        ),
        (
            "skipped-position",
            "open@0 x=1@1 x=2@4",
            "",
            {"positions": "dense"},
            "s1 came from position 1 to 4 in session 1, and positions between the two never came, although the stream "
            "has an event at each.",
        ),
        (
            "hand-over-hole",
            "open ~x=1@3 x=3@6",
            THREE,
            {},
            "s1 began with a snapshot at position 3 in session 1, but value 2 of key x at position 4 (operation 1) "
            "was left out: value 3 of key x at position 6 came.",
        ),
        (
            "hand-over-hole",
            "open ~x=1@5",
            THREE,
            {},
            "A snapshot at position 5 showed s1 value 1 of key x, where the source had something newer: operation "
            "1 had written value 2 at "
            "position 4.",
        ),
        (
            "hand-over-hole",
            "open@0 x=2@4 ~x=1@3",
            "",
            {},
            "A snapshot's row, value 1 of key x at position 3, reached s1 1.0 s after value 2 of key x at position "
            "4, which it overwrites.",
        ),
        (
            "hand-over-hole",
            "open ~x=1@3 w@3",
            "ok@2 x=1; ok@3 y=2",
            {"backfill": "whole"},
            "s1 got a whole snapshot in session 1, and then watermark 3, but the snapshot lacks value 2 of key y "
            "from position 3 "
            "on (operation 1).",
        ),
        (
            "lost-tail",
            "open@0 x=1@2",
            "ok@2 x=1; ok@4 y=2",
            {"tail": "settled"},
            "All had come to rest, and s1 was connected, but value 2 of key y at position 4 (operation 1) never "
            "reached it.",
        ),
        (
            "divergent-duplicate",
            "open@0 x=1@2 x=9@2",
            "",
            {},
            "Value 9 of key x at position 2 reached s1 1.0 s after value 1 had come as the same event.",
        ),
        (
            "outside-filter",
            "open:x@0 x=1@2 y=2@3",
            "",
            {},
            "Value 2 of key y at position 3 reached s1, but session 1 never requested that.",
        ),
        (
            "outside-filter",
            "open@5 x=1@2",
            "",
            {},
            "Value 1 of key x at position 2 reached s1, but session 1 had requested to begin at position 5.",
        ),
        (
            "moved-key",
            "open@0 x[0]=1@2 x[1]=2@3",
            "",
            {},
            "Value 2 of key x at position 3 reached s1 on another partition than value 1 of key x 1.0 s before it, "
            "and no move was declared.",
        ),
        (
            "watermark-from-future",
            "open@0 x=1@4 w@9",
            "ok@4~98~99 x=1",
            {"wm_idle": "rests"},
            "Watermark 9 was announced to s1, when position 4, of operation 0, was the highest that had begun.",
        ),
        (
            "watermark-from-future",
            "open@0 w@1000000001",
            "",
            {"follows_clock": True, "clock_error_ns": 0},
            "Watermark 1000000001 was announced to s1, beyond every commit of that time.",
        ),
        (
            "watermark-above-partitions",
            "open@0 w[1]@5 w@6",
            "",
            {"is_whole_least": True},
            "Watermark 6 of the whole stream was announced to s1, when a partition of it was at position 5, as the "
            "session "
            "knew.",
        ),
        (
            "watermark-above-partitions",
            "open[1]@5 w@6",
            "",
            {"is_whole_least": True},
            "Watermark 6 of the whole stream was announced to s1, when a partition of it had been opened at "
            "position 5, as the "
            "session knew.",
        ),
        (
            "rewritten-offset",
            "s1/1 open@0 x=1@4 s1/2 open@0 y=2@4",
            "",
            {"events_at_position": "one"},
            "s1 read value 2 of key y at position 4, where 2.0 s before value 1 of key x had been read.",
        ),
        (
            "event-after-end",
            "open@0 end x=1@4",
            "",
            {},
            "Value 1 of key x at position 4 reached s1 1.0 s after the end of its unit.",
        ),
        (
            "event-after-end",
            "open@0 end w@4",
            "",
            {},
            "Watermark 4 reached s1 1.0 s after the end of its unit.",
        ),
        (
            "zombie",
            "open@0 x=1@4 e2 y=2@6 e1",
            "",
            {"epochs": "owners"},
            "Value 2 of key y stands at position 6, put there by an older owner than value 1 of key x at position "
            "4: a replaced writer still wrote.",
        ),
    ],
)
def test_a_finding_says_what_happened(
    anomaly: str, log: str, source: str, changes: dict[str, object], sentence: str
) -> None:
    found = told(log, source, anomaly, **changes)
    assert found.sentence == sentence
    assert 1 <= len(found.events) <= 3
    assert found.count == 1


def test_what_a_source_did_wrong_by_itself_is_told_by_its_operations() -> None:
    found = reversal_finding(Reversal(op=7, position=4, before=3, before_position=5, count=2), Forms())
    assert found.sentence == "Operation 7 was invoked after operation 3 had ended, but its position 4 is not above 5."
    assert (found.ops, found.events, found.count) == ((3, 7), (), 2)


def test_a_before_image_that_is_wrong_is_told_with_the_previous_row() -> None:
    one = Sight(kind=ROW, seq=0, ns=0, session=1, key=key_of("x"), value=1, position=2)
    other = replace(one, seq=1, ns=1_000_000_000, value=3, position=6)
    example = Example(anomaly="before-mismatch", subscriber="s1", count=1, watermark=other, event=one, missed=None)
    assert finding(example, Names(name)).sentence == (
        "Value 3 of key x at position 6 reached s1, but its before-image is not the previous row of the key, value 1 "
        "of key x at position 2, 1.0 s before."
    )


def test_a_tombstone_is_told_with_the_event_before_it() -> None:
    row = Sight(kind=ROW, seq=0, ns=0, session=1, key=key_of("x"), value=1, position=2)
    mark = replace(row, kind=TOMBSTONE, seq=1, key=key_of("y"), value=NEVER, position=NEVER)
    example = Example(anomaly="lost-tombstone", subscriber="s1", count=1, watermark=mark, event=row, missed=None)
    astray = "A tombstone of key y reached s1 after value 1 of key x at position 2, not after its deletion."
    assert finding(example, Names(name)).sentence == astray
    bare = replace(example, watermark=replace(row, seq=2, key=key_of("z")))
    lost = "The deletion of key x at position 2 reached s1 without its tombstone, although tombstones are on."
    assert finding(bare, Names(name)).sentence == lost


def test_fingerprints_tell_snapshots_apart() -> None:
    one = told("open ~x=1@5", THREE, "hand-over-hole")
    other = told("open ~y=1@5", THREE.replace("x", "y"), "hand-over-hole")
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == told("open ~x=1@5 w@5", THREE, "hand-over-hole").fingerprint


def test_every_sentence_is_tried() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name, rule in RULES.items() if isinstance(rule.scope, OfKeys | OfLog) and name not in tests] == []
