"""What a reader reports to its group after an attempt whose answer was lost: the attempt may have been made."""

from unittest.mock import Mock

from clusters.pravega.readers.group import Group, Holding, Member, joined
from clusters.pravega.readers.reader import Reader, _Session
from clusters.pravega.records import Copied, Segment, Span
from clusters.pravega.shape import SPACE
from clusters.pravega.site import Site
from harness.core.machine import NodeId, Settings

R1, R2 = NodeId("r1"), NodeId("r2")
ENDED, NEXT = Segment(0, 0), Segment(5, 1)


def reader(*reads: _Session) -> Reader:
    """r1 in session 1, which reads these segments."""
    context = Mock(now_ns=lambda: 0)
    made = Reader()
    made._site = Site(R1, Settings(bugs=frozenset(), parameters={}), context)
    made._dead_ns, made._session, made._beats, made._later = 1, 1, {}, []
    made._reads = {read.segment: read for read in reads}
    return made


def test_a_segment_is_completed_once_though_the_first_attempt_had_no_answer() -> None:
    read = _Session(ENDED, 3)
    read.successors = (Copied(Span(0, SPACE, NEXT), (ENDED,)),)
    group = Group(members=(Member(R1, 1),), holdings=(Holding(ENDED, 1, 3),))
    made = reader(read)
    once = made._progress(group, 1)
    assert [each.segment for each in once.holdings] == [NEXT]
    assert [each.segment for each in made._progress(once, 1).holdings] == [NEXT]


def test_a_segment_that_was_perhaps_given_away_stays_held_until_an_answer_comes() -> None:
    one, other = _Session(ENDED, 3), _Session(NEXT, 0)
    alone = Group(members=(Member(R1, 1),), holdings=(Holding(ENDED, 1, 3), Holding(NEXT, 1, 0)))
    made = reader(one, other)
    made._progress(joined(alone, R2, 2), 1)
    assert (one.is_held, other.is_held) == (False, True)
    made._progress(alone, 1)  # The next attempt finds the group without the other reader, and gives nothing away.
    assert (one.is_held, other.is_held) == (False, True)
    made._obey(alone)
    assert (one.is_held, other.is_held) == (False, False)
