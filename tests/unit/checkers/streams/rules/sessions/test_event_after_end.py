"""S28 by hand: what comes behind the end of what it belongs to."""

import pytest

from checkers.streams.rules.sessions.event_after_end import events_after_end
from tests.worlds.streams.cases import accused, shown, view

ENDED = ["event-after-end"]


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("open@0 x=1@1 end", []),
        ("open@0 end x=1@1", ENDED),
        ("open@0 end ~x=1@1", ENDED),
        ("open@0 end w@1", ENDED),
        ("open@0 x=1@1 end x=1@1", ENDED),  # A repetition, too.
        ("open@0 end open@0 x=1@1", []),
        ("open@0 end[1] x[1]=1@1", ENDED),
        ("open@0 end[0] x[0]=1@1", ENDED),
        ("open@0 end[0] x[1]=1@1", []),
        ("end x=1@1", ENDED),
        ("open@0 end[1] w[1]@1", ENDED),
        ("open@0 end[1] x[2]=1@1", []),
        ("open@0 end[1] x=1@1", []),  # Of which partition it is, nobody says.
        ("open@0 end[1] w@1", []),  # The others go on.
        ("open@0 end[1] open[1]@0 x[1]=1@1", []),
        ("open@0 end open[1]@0 x[1]=1@1", []),
        ("open@0 end open[1]@0 x=1@1", []),  # It may be of the partition that was opened anew.
        ("open@0 end open[1]@0 w@1", []),
        ("open@0 end open[1]@0 x[2]=1@1", ENDED),
        ("open@0 open[1]@0 end x=1@1", ENDED),
        ("open@0 end[1] open[2]@0 x[1]=1@1", ENDED),
        ("open@0 end:x x=1@1", ENDED),
        ("open@0 end:x y=1@1", []),
        ("open@0 end:x w@1", []),
        ("open@0 end open:x@0 x=1@1", []),
        ("open@0 end open:x@0 y=1@1", ENDED),
        ("open@0 end gap commit close", []),
        ("open@0 close x=1@1", []),  # Who left may still be told a little.
        ("s1/1 open@0 end s1/2 open@0 x=1@1", []),
        ("s1/1 open@0 s1/2 open@0 s1/1 end s1/2 x=1@1", []),
        ("s1 open@0 end s2 open@0 x=1@1", []),
    ],
)
def test_behind_an_end_nothing_comes(log: str, anomalies: list[str]) -> None:
    assert accused(log, "", replay="session") == anomalies


def test_the_last_end_is_the_evidence() -> None:
    log = "open@0 end[1] end x[1]=1@1"
    assert shown(log, events_after_end(view(log))) == [("x[1]=1@1", "end")]


def test_what_nobody_wrote_is_another_fault() -> None:
    assert accused("open@0 end x=1@1", "ok@1 y=1") == ["phantom-event"]


def test_witnesses_are_ends() -> None:
    assert events_after_end(view("open@0 x=1@1 w@1")).witnesses == 0
    assert events_after_end(view("open@0 x=1@1 end[1] end")).witnesses == 2
