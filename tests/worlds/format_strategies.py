"""Random histories for the tests of formats: every kind of record, odd keys and values, operations left open."""

from typing import Literal

from hypothesis import strategies as st

from harness.core.record import Complete, Evidence, Fault, Invoke, Json, Mark, MicroOp, Probe, State, StreamEvent

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
ODD: list[Json] = [
    None,
    True,
    False,
    0,
    1,
    1.0,
    1.5,
    -0.0,
    "1",
    "",
    "é😀",
    '"',
    ":x",
    -1,
    2**53 - 1,
    2**53,
    2**63,
    2**64 - 1,
]
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.sampled_from(ODD) | TEXT | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=5,
)
COUNTS = st.dictionaries(TEXT, NUMBERS, max_size=3)
MAYBE = st.none() | NUMBERS
MAYBE_TEXT = st.none() | TEXT

OTHERS: st.SearchStrategy[Evidence] = st.one_of(
    st.builds(
        StreamEvent,
        NUMBERS,
        TEXT,
        NUMBERS,
        NUMBERS,
        TEXT,
        MAYBE_TEXT,
        VALUES,
        VALUES,
        position=MAYBE,
        ordinal=MAYBE,
        epoch=MAYBE,
        unit=MAYBE,
        unit_rows=MAYBE,
    ),
    st.builds(
        Fault,
        NUMBERS,
        NUMBERS,
        st.sampled_from(["begin", "effect", "end", "refused"]),
        TEXT,
        st.lists(TEXT, max_size=3).map(tuple),
        MAYBE,
        MAYBE_TEXT,
    ),
    st.builds(Probe, NUMBERS, TEXT, TEXT, NUMBERS),
    st.builds(State, NUMBERS, TEXT, TEXT, VALUES, VALUES, MAYBE, MAYBE),
    st.builds(Mark, NUMBERS, TEXT, COUNTS, COUNTS, COUNTS, MAYBE_TEXT),
)


@st.composite
def histories(draw: st.DrawFn, size: int = 12) -> list[Evidence]:
    """Records that a run could leave behind."""
    records: list[Evidence] = []
    asked: list[Invoke] = []
    count = 0
    for _ in range(draw(st.integers(0, size))):
        match draw(st.sampled_from(["invoke", "complete", "other"])):
            case "invoke":
                invoke = draw(invocations(count))
                records.append(invoke)
                asked.append(invoke)
                count += 1
            case "complete" if asked:
                records.append(draw(completions(asked.pop(draw(st.integers(0, len(asked) - 1))))))
            case _:
                records.append(draw(OTHERS))
    return records


@st.composite
def invocations(draw: st.DrawFn, index: int) -> Invoke:
    """An invocation: a transaction, or something else."""
    mops: tuple[MicroOp, ...] | None = None
    if draw(st.booleans()):
        mops = tuple(draw(st.lists(asked_mops(), max_size=3)))
    value = draw(VALUES) if mops is None else None
    return Invoke(index, draw(NUMBERS), draw(NUMBERS), draw(NUMBERS), draw(TEXT), value, mops)


@st.composite
def asked_mops(draw: st.DrawFn) -> MicroOp:
    """A micro-operation without result."""
    kinds: list[Literal["r", "append", "w"]] = ["r", "append", "w"]
    f = draw(st.sampled_from(kinds))
    value = None if f == "r" else draw(VALUES.filter(lambda each: each is not None))
    return MicroOp(f, draw(VALUES), value, draw(MAYBE_TEXT), draw(MAYBE_TEXT))


@st.composite
def completions(draw: st.DrawFn, invoke: Invoke) -> Complete:
    """A completion of that invocation, of any outcome, with or without results."""
    mops: tuple[MicroOp, ...] | None = None
    if invoke.mops is not None and draw(st.booleans()):
        reads = st.none() | st.lists(VALUES, max_size=3) | st.integers(0, 9)
        mops = tuple(
            MicroOp("r", mop.key, draw(reads), mop.table, mop.lock) if mop.f == "r" else mop for mop in invoke.mops
        )
    return Complete(
        invoke.index,
        draw(NUMBERS),
        draw(st.sampled_from(["ok", "fail", "info"])),
        draw(VALUES) if invoke.mops is None else None,
        mops,
        draw(MAYBE_TEXT),
        draw(MAYBE_TEXT),
        *(draw(MAYBE) for _ in range(5)),
    )


# What EDN and JSON tell apart: an object with one name that begins with "#" stands for what JSON has no word for.
PLAIN = st.recursive(
    st.sampled_from(ODD) | TEXT | NUMBERS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT.filter(lambda name: name[:1] != "#"), inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def list_append_histories(draw: st.DrawFn, size: int = 12) -> list[Evidence]:
    """Transactions over lists, as Jepsen records them: a process does one thing at a time, `fail` and `info` tell
    nothing of their reads, and times are no intentions."""
    records: list[Evidence] = []
    opened: dict[int, Invoke] = {}
    count = 0
    for time_ns in range(draw(st.integers(0, size))):
        process = draw(st.integers(0, 3))
        if process in opened:
            records.append(draw(list_append_completions(opened.pop(process), time_ns)))
            continue
        keys = draw(st.lists(PLAIN, max_size=3))
        mops = [MicroOp("append", key, draw(PLAIN)) if draw(st.booleans()) else MicroOp("r", key) for key in keys]
        opened[process] = Invoke(count, time_ns, time_ns, process, "txn", None, tuple(mops))
        records.append(opened[process])
        count += 1
    return records


@st.composite
def list_append_completions(draw: st.DrawFn, invoke: Invoke, time_ns: int) -> Complete:
    """A completion of that transaction."""
    outcome: Literal["ok", "fail", "info"] = draw(st.sampled_from(["ok", "fail", "info"]))
    if outcome != "ok":
        return Complete(invoke.index, time_ns, outcome, error=draw(MAYBE_TEXT))
    reads = st.lists(PLAIN, max_size=3)
    mops = tuple(MicroOp("r", mop.key, draw(reads)) if mop.f == "r" else mop for mop in invoke.mops or ())
    return Complete(invoke.index, time_ns, outcome, None, mops)
