"""Two stream rules on dataframe libraries beside ours: CPU seconds, and the growth of memory, from view to ruling.

`pip install polars`, which is no dependency, then `python -m tests.bench.dataframes 10000000`. Each measurement has a
process of its own, variants alternate, and all must find the same. Numbers and choice: docs/decisions/columns.md.
"""

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from checkers.columns.table import empty
from checkers.streams.coverage import logs_of
from checkers.streams.rules.logs.rewritten_offset import rewritten_offsets
from checkers.streams.rules.watermarks.late_event import late_events
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Ruling, StreamView, stream_view
from harness.core.columns import NEVER, ROW, WATERMARK, Int64s, SourceWrites
from tests.bench.streams import CONTRACT, KEYS, source, stream

try:
    import polars as pl
except ImportError:
    raise SystemExit("polars is not installed: .venv/bin/pip install polars") from None

ROUNDS: Final = 3
ROWS_A_FAULT: Final = 100_003
OFFSET: Final = ["log", "position"]
EXACT: Final = {"strategy": "forward", "coalesce": False, "check_sortedness": False}
AFTER: Final = EXACT | {"allow_exact_matches": False}


def late_on_polars(view: StreamView) -> tuple[Ruling, Ruling]:
    """S05 and S06, with every parameter of the contract."""
    lanes, c = view.lanes, pl.col
    lane = np.repeat(np.arange(len(lanes.last)), np.diff(lanes.begin))
    marks = pl.DataFrame({"mark": lanes.rows, "height": lanes.height, "lane": lane}).with_columns(
        session=lanes.session[lane], span=lanes.span[lane]
    )
    rows = _firsts(view, marks.sort("mark"))
    is_checked = ~c("follows") | (c("reached") >= c("position")).fill_null(value=False)
    if view.contract.closed != "<":
        is_checked |= c("position").is_in(marks["height"].implode())
    checked = rows.filter(is_checked)
    pairs = _pairs(view, checked, marks.sort("height", "mark"))
    first = pairs.group_by("row").agg(pl.min("opens", "above", "at"), pl.any("meets"))
    found = checked.join(first, on="row", how="left").with_columns(
        is_late=(c("above") < c("row")).fill_null(value=False),
        is_reached=(c("at") < c("row")).fill_null(value=False),
        is_witness=c("follows") | (c("opens") < c("row")).fill_null(value=False),
    )
    witnesses = int(rows["follows"].sum()) + found.filter(c("is_witness") & ~c("follows")).height
    late = found.filter("is_late").sort("above", "row")
    boundary = found.filter(c("is_reached") & ~c("is_late")).sort("at", "row")
    ruling = Ruling.of_events(late["above"].to_numpy(), late["row"].to_numpy(), witnesses=witnesses)
    if view.contract.closed == "<":
        none = np.zeros(0, np.int64)
        return ruling, Ruling.of_events(none, none, witnesses=0, legal=boundary.height)
    met = found.filter(c("is_witness") & c("meets")).height
    return ruling, Ruling.of_events(boundary["at"].to_numpy(), boundary["row"].to_numpy(), witnesses=met)


def _firsts(view: StreamView, marks: Any) -> Any:
    """The first deliveries: whether they follow a watermark of their session, and the highest one of their scope."""
    d, first = view.deliveries, view.first[view.deliveries.kind[view.first] == ROW]
    own = view.coverage.at(view.session[first], d.key[first], d.span[first], first)
    columns = {"session": view.session, "scope": view.scope, "span": d.span, "position": d.position}
    height = pl.when((pl.col("kind") == WATERMARK) & ~pl.col("is_regress")).then("position")
    rows = (
        pl.LazyFrame(columns | {"kind": d.kind, "is_regress": view.is_regress})
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64), reached=height.cum_max().forward_fill().over("scope"))
        .select(pl.all().gather(first))
        .with_columns(since=pl.lit(pl.Series(own.since)), reaches=pl.lit(pl.Series(own.reaches(d.position[first]))))
        .collect()
        .sort("since")
    )
    whole = marks.filter(pl.col("span") < 0).select("session", "mark")
    local = marks.filter(pl.col("span") >= 0).select("session", "span", mark_of_span="mark")
    follows = pl.col("reaches") & (pl.min_horizontal("mark", "mark_of_span") < pl.col("row")).fill_null(value=False)
    return (
        rows.join_asof(whole, left_on="since", right_on="mark", by="session", **AFTER)
        .join_asof(local, left_on="since", right_on="mark_of_span", by=["session", "span"], **AFTER)
        .select("row", "scope", "span", "position", "reached", follows=follows)
    )


def _pairs(view: StreamView, rows: Any, marks: Any) -> Any:
    """Rows with the lanes that cover them, and the first watermarks there: any, one above, one not below."""
    d, lanes, c = view.deliveries, view.lanes, pl.col
    of_lanes = {"lane": np.arange(len(lanes.last)), "of": lanes.scope, "session": lanes.session, "speaks": lanes.span}
    known = pl.DataFrame(of_lanes | {"low": lanes.low, "top": lanes.top(), "last": lanes.last})
    is_near = (c("scope") == c("of")) & (c("position") >= c("low")) & (c("position") <= c("top"))
    pairs = rows.join_where(known, is_near).filter((c("speaks") < 0) | (c("speaks") == c("span")))
    row = pairs["row"].to_numpy()
    covered = view.coverage.at(pairs["session"].to_numpy(), d.key[row], d.span[row], pairs["last"].to_numpy())
    by_time, by_height = marks.select("lane", opens="mark").sort("opens"), marks.select("lane", "height")
    above, at = (by_height.with_columns(marks["mark"].alias(name)) for name in ("above", "at"))
    pairs = (
        pairs.with_columns(since=covered.since, reaches=covered.reaches(d.position[row]))
        .filter("reaches")
        .sort("since")
        .join_asof(by_time, left_on="since", right_on="opens", by="lane", **AFTER)
        .sort("position")
        .join_asof(above, left_on="position", right_on="height", by="lane", **AFTER)
        .drop("height")
        .join_asof(at, left_on="position", right_on="height", by="lane", **EXACT)
        .with_columns(
            above=pl.when(c("above").is_not_null()).then(pl.max_horizontal("above", "opens")),
            at=pl.max_horizontal("at", "opens"),
        )
    )
    meets = d.position[pairs["at"].to_numpy()] == pairs["position"].to_numpy()
    kept = {name: _unless_replayed(view, pairs["row"].to_numpy(), pairs[name]) for name in ("above", "at")}
    return pairs.with_columns(meets=pl.Series(meets), **kept)


def _unless_replayed(view: StreamView, rows: Int64s, marks: Any) -> Any:
    """The watermarks, NEVER for versions that the stream had legally skipped and shows in a replay."""
    if view.contract.versions == "every":
        return marks
    mark = marks.fill_null(NEVER).to_numpy().copy()
    checked = np.flatnonzero(mark < rows)
    before, versions = mark[checked], Versions.of_events(view, rows[checked])
    height = view.deliveries.position[before]
    is_replayed = superseded(view, versions, group=view.scope, watermark=before, height=height, before=before)
    mark[checked[is_replayed]] = NEVER
    return pl.Series(mark)


def rewritten_on_arrow(view: StreamView) -> tuple[Ruling]:
    """S24. Arrow has no running sum by group: `_log` remains ours."""
    d, contract = view.deliveries, view.contract
    if contract.events_at_position != "one":
        return (Ruling.nothing(),)
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom & (d.value != NEVER))
    log = logs_of(d, view.session, is_position_global=view.contract.is_position_global)
    columns = {"log": log, "position": d.position, "key": d.key, "value": d.value}
    table = pa.table({name: column[rows] for name, column in (columns | {"session": view.session}).items()})
    table = table.append_column("row", [rows])
    first = [(name, "first") for name in ("row", "key", "value", "session")]
    pairs = table.join(table.group_by(OFFSET, use_threads=False).aggregate(first), OFFSET, join_type="inner")
    differs = pc.not_equal(pairs["key"], pairs["key_first"])
    if contract.identity == "position+key+value":
        differs = pc.or_(differs, pc.not_equal(pairs["value"], pairs["value_first"]))
    is_witness = pc.or_(differs, pc.not_equal(pairs["session"], pairs["session_first"]))
    broken = pairs.filter(differs).sort_by("row")
    witnesses = pairs.filter(is_witness).group_by(OFFSET).aggregate([]).num_rows
    return (Ruling.of_events(broken["row"].to_numpy(), broken["row_first"].to_numpy(), witnesses=witnesses),)


def late_view(rows: int) -> StreamView:
    """Every ten operations a watermark; few rows come below one, or at one."""
    d = stream(source(rows))
    events, position = np.flatnonzero(d.kind == ROW), d.position.copy()
    position[events[52_345::ROWS_A_FAULT]] -= 25
    behind = np.flatnonzero(d.kind[:-1] == WATERMARK)[::5_003] + 1
    behind = behind[d.kind[behind] == ROW]
    position[behind] = position[behind - 1]
    return stream_view(replace(d, position=position), empty(SourceWrites), CONTRACT)


def rewritten_view(rows: int) -> StreamView:
    """A log that two sessions read, the second with a few other events."""
    d, half = stream(source(rows)), rows // 2
    place = np.arange(len(d.kind)) % half
    key = place * 7_919 % KEYS
    key[half::ROWS_A_FAULT] += 1
    kind, session = np.full(len(key), ROW, np.int8), np.arange(len(key)) // half
    d = replace(d, kind=kind, session=session, position=place, key=key, value=place, ordinal=np.zeros_like(key))
    return stream_view(d, empty(SourceWrites), msgspec.structs.replace(CONTRACT, events_at_position="one"))


Rule = Callable[[StreamView], tuple[Ruling, ...]]
RULES: Final[dict[str, tuple[Callable[[int], StreamView], dict[str, Rule]]]] = {
    "late-event": (late_view, {"ours": late_events, "polars": late_on_polars}),
    "rewritten-offset": (
        rewritten_view,
        {"ours": lambda view: (rewritten_offsets(view),), "arrow": rewritten_on_arrow},
    ),
}


def measured(name: str, variant: str, rows: int, threads: int) -> tuple[list[float], str]:
    """CPU seconds, seconds, MB of memory, and what was found: the counts and a hash."""
    pa.set_cpu_count(threads)
    make, variants = RULES[name]
    view = make(rows)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # The peak of memory starts anew.
    memory, begin, cpu = _memory_mb("VmRSS"), time.perf_counter(), time.process_time()
    rulings = variants[variant](view)
    cpu_s, took_s, grown_mb = time.process_time() - cpu, time.perf_counter() - begin, _memory_mb("VmHWM") - memory
    text = repr([(r.watermark.tolist(), r.row.tolist(), r.witnesses, r.legal) for r in rulings])
    counts = [len(ruling.row) for ruling in rulings]
    return [cpu_s, took_s, grown_mb], f"violations {counts}, hash {sha256(text.encode()).hexdigest()[:8]}"


def _memory_mb(field: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(f"{field}:"))


def main(rows: int) -> None:
    """Print the medians of each variant, with one thread and with two; ours has one."""
    for name, (_, variants) in RULES.items():
        done: dict[tuple[str, int], list[tuple[list[float], str]]] = {}
        for variant, threads in [("ours", 1), *product(variants.keys() - {"ours"}, (1, 2))] * ROUNDS:
            os.environ["POLARS_MAX_THREADS"] = str(threads)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                result = pool.submit(measured, name, variant, rows, threads).result()
            done.setdefault((variant, threads), []).append(result)
        (found,) = {what for results in done.values() for _, what in results}
        print(f"{name}, {rows:,} rows: {found}")
        for (variant, threads), results in done.items():
            cpu_s, took_s, grown_mb = map(median, zip(*(figures for figures, _ in results), strict=True))
            print(
                f"  {variant:7} {threads} thread(s) {cpu_s:7.2f} CPU s {took_s:7.2f} s {grown_mb:7,.0f} MB", flush=True
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
