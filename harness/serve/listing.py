"""A list of runs, filtered and cut into pages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from harness.serve.index import STATES, Index, Row

T = TypeVar("T")
PAGE_ROWS = 50
OFFERED_MAX = 40  # The most anomalies, or releases, that the filter offers.


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A filter for runs. An empty field does not restrict. `finding` is a fingerprint or the name of an anomaly."""

    cluster: str = ""
    release: str = ""
    verdict: str = ""
    finding: str = ""

    def takes(self, row: Row) -> bool:
        """True if the run passes the filter."""
        return (
            self.cluster in ("", row.cluster)
            and self.release in ("", row.release)
            and self.verdict in ("", row.state)
            and (not self.finding or any(self.finding in (each.fingerprint, each.anomaly) for each in row.findings))
        )


class Paged(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One page of a list."""

    rows: Sequence[T]
    page: int
    page_count: int
    first: int  # The number of the first row shown, from 1.
    count: int  # The number of rows on all pages.


class Listed(Paged[Row], frozen=True, kw_only=True):
    """One page of the filtered runs, and the values that the filter offers, each with its number of runs."""

    choice: Choice
    all_count: int
    clusters: Sequence[tuple[str, int | None]]  # None: not counted yet.
    releases: Sequence[tuple[str, int | None]]  # The declared releases of systems under test.
    verdicts: Sequence[tuple[str, int | None]]
    anomalies: Sequence[tuple[str, int]]


def paged(rows: Sequence[T], page: int) -> Paged[T]:
    """That page of the rows, from 1; the last page if there are fewer."""
    page_count = max(1, -(-len(rows) // PAGE_ROWS))
    page = min(max(1, page), page_count)
    begin = (page - 1) * PAGE_ROWS
    return Paged(
        rows=rows[begin : begin + PAGE_ROWS], page=page, page_count=page_count, first=begin + 1, count=len(rows)
    )


def choice_of(query: Mapping[str, str]) -> Choice:
    """The filter in a query. A verdict that does not exist lets no run pass."""
    return Choice(**{name: query.get(name, "").strip() for name in Choice.__struct_fields__})


def listed(rows: Sequence[Row], choice: Choice, page: int) -> Listed:
    """That page of the runs that pass the filter, from 1; the last page if there are fewer."""
    found = paged([row for row in rows if choice.takes(row)], page)
    states, anomalies = Counter(row.state for row in rows), Counter(each for row in rows for each in row.anomalies)
    return Listed(
        **msgspec.structs.asdict(found),
        choice=choice,
        all_count=len(rows),
        clusters=sorted(Counter(row.cluster for row in rows).items()),
        releases=sorted(Counter(row.release for row in rows if row.release).items())[:OFFERED_MAX],
        verdicts=[(state, states[state]) for state in STATES if states[state]],
        anomalies=anomalies.most_common(OFFERED_MAX),
    )


def first_sight(index: Index) -> Listed:
    """The first page of all runs, made from only their own reports: for a store that has not been read yet."""
    rows, all_count = index.glance(PAGE_ROWS)
    return Listed(
        rows=rows,
        choice=Choice(),
        page=1,
        page_count=max(1, -(-all_count // PAGE_ROWS)),
        first=1,
        count=all_count,
        all_count=all_count,
        clusters=[(name, None) for name in sorted({row.cluster for row in rows})],
        releases=[(name, None) for name in sorted({row.release for row in rows if row.release})],
        verdicts=[(state, None) for state in STATES],
        anomalies=(),
    )
