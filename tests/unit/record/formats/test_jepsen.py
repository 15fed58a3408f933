import json
from pathlib import Path

import pytest

from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Fault, Invoke, Json, MicroOp
from harness.record.formats.edn.exchange import read_edn_history, write_edn_history
from harness.record.formats.edn.jepsen import OVERLAPPING_MAX, records_of_maps
from harness.record.formats.sessions import OVERLAPPING

APPEND = MicroOp("append", "x", 1)


def edn(tmp_path: Path, text: str) -> list[Evidence]:
    path = tmp_path / "history.edn"
    path.write_text(text, encoding="utf-8")
    return list(read_edn_history(path))


def records(*maps: dict[str, Json]) -> list[Evidence]:
    return list(records_of_maps("h", ((f"element {place}", each) for place, each in enumerate(maps)), ""))


def op(kind: str, value: Json = None, **fields: Json) -> dict[str, Json]:
    return {"type": kind, "f": "txn", "value": value, **fields}


def test_a_completion_ends_the_invocation_of_its_process(tmp_path: Path) -> None:
    text = """
    {:index 2, :type :invoke, :process 1, :f :txn, :value [[:append "x" 1] [:r :y nil]], :time 10}
    {:index 3, :type :invoke, :process 0, :f :txn, :value [[:r :y nil]], :time 11} ; in between
    {:index 5, :type :ok, :process 1, :f :txn, :value [[:append "x" 1] [:r :y [1 "a"]]], :time 12, :node "n1"}
    {:index 8, :type :fail, :process 0, :f :txn, :value [[:r :y nil]], :time 13, :error [:no-client "refused"]}"""
    assert edn(tmp_path, text) == [
        Invoke(0, 10, 10, 1, "txn", None, (APPEND, MicroOp("r", ":y"))),
        Invoke(1, 11, 11, 0, "txn", None, (MicroOp("r", ":y"),)),
        Complete(0, 12, "ok", None, (APPEND, MicroOp("r", ":y", [1, "a"]))),
        Complete(1, 13, "fail", None, None, '[":no-client","refused"]'),
    ]


def test_what_is_missing_has_a_default() -> None:
    assert records(
        {"type": "invoke", "value": [["append", "x", 1]]}, {"type": "ok", "value": [["append", "x", 1]]}
    ) == [
        Invoke(0, 0, 0, 0, "txn", None, (APPEND,)),
        Complete(0, 1, "ok", None, (APPEND,)),
    ]


def test_a_process_with_completions_only_invoked_just_before_them() -> None:
    assert records(
        op("fail", [["append", "x", 1]], time=5),
        op("ok", [["r", "x", None], ["append", "x", 1]], time=6),
        op("info", [["r", "x", None]], time=7),
        op("info", [["r", "x", [1]]], time=8),
    ) == [
        Invoke(0, 5, 5, 0, "txn", None, (APPEND,)),
        Complete(0, 5, "fail"),
        Invoke(1, 6, 6, 0, "txn", None, (MicroOp("r", "x"), APPEND)),
        Complete(1, 6, "ok", None, (MicroOp("r", "x", []), APPEND)),
        Invoke(2, 7, 7, 0, "txn", None, (MicroOp("r", "x"),)),
        Complete(2, 7, "info"),
        Invoke(3, 8, 8, 0, "txn", None, (MicroOp("r", "x"),)),
        Complete(3, 8, "info", None, (MicroOp("r", "x", [1]),)),
    ]


def test_what_is_no_transaction_keeps_its_value(tmp_path: Path) -> None:
    text = "[{:type :invoke, :f :read, :value nil} {:type :ok, :f :read, :value {0 10}}]"
    assert edn(tmp_path, text) == [
        Invoke(0, 0, 0, 0, "read"),
        Complete(0, 1, "ok", {"#map": [[0, 10]]}),
    ]


def test_a_transaction_of_other_steps_keeps_its_value() -> None:
    steps: list[Json] = [["poll"], ["send", 1, 2]]
    invoke, complete = records(op("invoke", steps), op("ok", [["poll", {}], ["send", 1, [0, 2]]]))
    assert isinstance(invoke, Invoke)
    assert isinstance(complete, Complete)
    assert (invoke.f, invoke.value, invoke.mops) == ("txn", steps, None)
    assert complete.value == [["poll", {}], ["send", 1, [0, 2]]]


@pytest.mark.parametrize(("write", "seen"), [("append", []), ("w", None)])
def test_a_read_of_nil_saw_the_empty_list_or_an_empty_register(write: str, seen: Json) -> None:
    reading: Json = [["r", "x", None]]
    found = records(op("invoke", reading), op("ok", reading), op("invoke", [[write, "x", 1]]))
    assert isinstance(found[1], Complete)
    assert found[1].mops == (MicroOp("r", "x", seen),)


def test_the_nemesis_leaves_effects_without_a_window(tmp_path: Path) -> None:
    text = "{:type :info, :f :start, :process :nemesis, :value :all, :time 3}"
    assert edn(tmp_path, text) == [Fault(3, 0, "effect", "start", (), note='":all"')]


def test_only_the_nemesis_and_what_never_succeeds_may_have_a_name() -> None:
    named: list[dict[str, Json]] = [
        {"type": "invoke", "process": "nemesis"},
        {"type": "ok", "process": ":nemesis"},
        {"type": "info", "process": "clock"},
    ]
    assert all(isinstance(each, Fault) for each in records(*named))
    for kind in ("invoke", "ok", "fail"):
        with pytest.raises(HistoryError, match="element 0: its process is 'a': give clients integers for names"):
            records(op(kind, [["append", "x", 1]], process="a"))


def test_an_operation_of_jepsen_s_own_type_is_a_map(tmp_path: Path) -> None:
    [invoke] = edn(tmp_path, "#jepsen.history.Op{:index 0, :type :invoke, :f :txn, :value [[:append :x 1]]}")
    assert invoke == Invoke(0, 0, 0, 0, "txn", None, (MicroOp("append", ":x", 1),))


def test_overlapping_transactions_of_one_process_become_processes_of_their_own() -> None:
    one: Json = [["append", "x", 1]]
    other: Json = [["append", "x", 2]]
    invoked = records(op("invoke", one), op("invoke", other), op("ok", other), op("ok", one), op("invoke", one))
    assert [record.process for record in invoked if isinstance(record, Invoke)] == [0, OVERLAPPING, 0]
    assert [record.index for record in invoked if isinstance(record, Complete)] == [1, 0]


def test_overlapping_operations_of_one_process_are_told_apart_by_what_they_ask() -> None:
    found = records(
        op("invoke", 2, f="write"),
        op("invoke", 1, f="write"),
        op("ok", 1, f="write"),
        op("invoke", None, f="read"),
        op("ok", 2, f="write"),
        op("ok", [1, 2], f="read"),
    )
    assert [record.process for record in found if isinstance(record, Invoke)] == [0, OVERLAPPING, OVERLAPPING]
    assert [(each.index, each.value) for each in found if isinstance(each, Complete)] == [(1, 1), (0, 2), (2, [1, 2])]


def test_a_key_beside_the_value_is_part_of_the_value() -> None:
    found = records(op("invoke", "v", f="put", key="k"), op("ok", "v", f="put", key="k"), op("invoke", [], key=1))
    assert [each.value for each in found if isinstance(each, Invoke | Complete)] == [["k", "v"], ["k", "v"], None]


def test_more_than_a_hundred_open_operations_of_one_process_are_refused() -> None:
    with pytest.raises(HistoryError, match="element 100: process 0 invokes, but its invocation in element 0 is open"):
        records(*(op("invoke", [["append", "x", each]]) for each in range(OVERLAPPING_MAX + 1)))


@pytest.mark.parametrize(
    ("maps", "problem"),
    [
        ([17], "element 0: it is not a map"),
        ([{"type": "done"}], "element 0: its type must be one of invoke, ok, fail, info"),
        ([op("invoke", [], index=4), op("ok", [], index=4)], "element 1: its index is 4, and the index before is 4"),
        ([op("invoke", [], index=-2)], "element 0: its index is not an integer from 0"),
        ([op("invoke", [], process=1.5)], "element 0: its process is not an integer from 0"),
        ([op("invoke", [], process="1")], "element 0: its process is not an integer from 0"),
        ([op("invoke", [], time=1 << 63)], "element 0: its time is not an integer from 0"),
        ([op("invoke")], "element 0: a transaction is a list of"),
        ([op("invoke", [["r", 1, None], ["poll", 1, 2]])], "element 0: step 2 of its transaction is not"),
        ([op("invoke", [[], ["poll"]])], "element 0: a transaction is a list of"),
        ([op("ok", [["frob", "x", 1]])], "element 0: step 1 of its transaction is 'frob', which no check knows: write"),
        ([op("invoke", [["poll"], [":cas", 1, 2]])], "element 0: step 2 of its transaction is ':cas', which no check"),
        ([op("invoke", [["append", 1]])], "element 0: a micro-operation has 2 parts"),
        ([op("invoke", [["r", 1, None, 3]])], "element 0: a micro-operation has 4 parts"),
        ([op("invoke", []), op("ok", []), op("ok", [])], "element 2: process 0 completes, but has no open invocation"),
        ([op("ok", []), op("invoke", [])], "element 1: process 0 invokes, after it completed without an invocation"),
        (
            [op("invoke", f="read"), op("invoke", f="read"), op("ok", 3, f="read")],
            "element 2: .*, and 2 of its open invocations are like it",
        ),
        (
            [op("invoke", 1, f="write"), op("invoke", 2, f="write"), op("ok", 3, f="write")],
            "element 2: .*, and 0 of its open invocations are like it",
        ),
        ([op("invoke", []), op("ok", None, f="read")], "element 1: f is 'read', and was 'txn' when element 0 invoked"),
        (
            [op("invoke", [["r", 1, None]]), op("ok", [["r", 2, [1]]])],
            "element 1: its transaction differs from its invocation",
        ),
        (
            [op("invoke", [["append", 1, 1]]), op("fail", [["append", 1, True]])],
            "element 1: its transaction differs from its invocation",
        ),
        ([op("invoke", []), op("ok")], "element 1: its transaction differs from its invocation"),
        (
            [op("invoke", []), op("invoke", []), op("ok", [])],
            "element 2: .*, and 2 of its open invocations are like it",
        ),
        ([op("invoke", []), op("invoke", []), op("ok", [["r", 1]])], "element 2: .*, and 0 of its open invocations"),
    ],
)
def test_a_map_that_makes_no_sense_is_named(maps: list[dict[str, Json]], problem: str) -> None:
    with pytest.raises(HistoryError, match=f"^h, {problem}"):
        records(*maps)


def test_list_append_goes_out_as_elle_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "out.edn"
    invoke = Invoke(0, 5, 4, 3, "txn", None, (APPEND, MicroOp("r", 7), MicroOp("r", 8, None, "t")))
    done = (APPEND, MicroOp("r", 7, [1, "b"]), MicroOp("r", 8, [], "t"))
    again = Invoke(1, 7, 7, 3, "txn", None, (APPEND,))
    fault = Fault(6, 0, "begin", "pause", ("n1",))
    write_edn_history(
        [invoke, fault, Complete(0, 6, "ok", None, done), again, Complete(1, 9, "info", error="slow")], path
    )
    assert path.read_text(encoding="utf-8").splitlines() == [
        '{:index 0, :type :invoke, :process 3, :f :txn, :value [[:append "x" 1] [:r 7 nil] [:r ["t" 8] nil]], :time 5}',
        '{:index 1, :type :ok, :process 3, :f :txn, :value [[:append "x" 1] [:r 7 [1 "b"]] [:r ["t" 8] []]], :time 6}',
        '{:index 2, :type :invoke, :process 3, :f :txn, :value [[:append "x" 1]], :time 7}',
        '{:index 3, :type :info, :process 3, :f :txn, :value [[:append "x" 1]], :time 9, :error "slow"}',
    ]


@pytest.mark.parametrize("name", ["elle/*.edn", "elle-cli/elle/*.edn", "knossos/*/*/*.edn"])
def test_operations_of_stored_histories_survive_the_way_out_and_in(name: str, tmp_path: Path, stored: Path) -> None:
    for path in sorted(stored.glob(name)):
        operations = [each for each in read_edn_history(path) if isinstance(each, Invoke | Complete)]
        write_edn_history(operations, tmp_path / "out.edn")
        again = list(read_edn_history(tmp_path / "out.edn"))
        assert again == operations, path


def test_every_case_of_elle_s_own_tests_is_read(stored: Path) -> None:
    count = 0
    for line in (stored / "elle-unit" / "cases.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        found = records(*case["history"])
        assert sum(isinstance(each, Complete) for each in found) == sum(o["type"] != "invoke" for o in case["history"])
        count += 1
    assert count == 77
