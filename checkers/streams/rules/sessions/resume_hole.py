"""S13 resume-hole: after its start a session leaves no write out."""

from typing import Final

import numpy as np

from checkers.columns.index import ascending
from checkers.columns.runs import distinct
from checkers.streams.closings import missing_events
from checkers.streams.rule import Cut, Need, OfLog, Rule
from checkers.streams.rules.sessions.holes import left_out_sentence, opening_holes, resume_holes, snapshot_holes
from checkers.streams.rules.sessions.joins import join_holes
from checkers.streams.rules.sessions.missing_event import lost_events
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause


def left_out(view: StreamView) -> Ruling:
    """S13: expected writes after a session's start that it left out (`checkers.streams.rules.sessions.holes`).

    Holes of sessions that resume, and those of first sessions that S09 does not report. The latter came in another
    session, or its rule does not apply. If sessions join, also writes between two sessions of a subscriber.
    """
    resumes, openings, lost = resume_holes(view), opening_holes(view), lost_events(view)
    rest = np.flatnonzero(~np.isin(view.blamed(openings), view.blamed(lost)))
    joins = join_holes(view) if view.contract.sessions == "joined" else Ruling.nothing()
    mark = np.concatenate((resumes.watermark, openings.watermark[rest], joins.watermark))
    row = np.concatenate((resumes.row, openings.row[rest], joins.row))
    write = np.concatenate((resumes.write, openings.write[rest], joins.write))
    order = ascending(mark, write)
    starts = [each.witness_rows for each in (resumes, openings, joins) if each.witness_rows is not None]
    witnesses = distinct(np.concatenate([mark[:0], *starts]))
    return Ruling(
        watermark=mark[order], row=row[order], write=write[order], witnesses=len(witnesses), witness_rows=witnesses
    )


RESUME_HOLE: Final = Rule(
    name="resume-hole",
    id="S13",
    rank=160,
    anomaly=Anomaly(meaning="After a resume the first event of a key is not the next one.", cause=Cause.SESSION),
    witness="a start after which a key was written, if it can be known that the write was sent",
    needs=frozenset({Need.SOURCE, Need.POSITIONS, Need.ALL}),
    cut=Cut.STATE,
    scope=OfLog(left_out, left_out_sentence, after=(missing_events, resume_holes, snapshot_holes, opening_holes)),
)
