import contextlib
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import ScenarioError
from nemesis.plan import Plan, Step
from nemesis.validation import plan_from_json, plan_to_json, problems, validate
from tests.unit.nemesis.topologies import QUORUM, SMALL

SOUND = Step(fault="crash", package="crash", at_ns=10, until_ns=20, targets=("n1",))


def lines(*steps: Step, duration_ns: int | None = None) -> list[str]:
    return problems(Plan(steps=steps), SMALL, duration_ns=duration_ns)


def changed(**fields: object) -> Step:
    return msgspec.structs.replace(SOUND, **fields)


def cut(*targets: str, fault: str = "cut", **args: int | str) -> Step:
    return changed(fault=fault, package="partition", targets=targets, args=args)


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (changed(at_ns=-1), "step 0 (crash): at_ns is -1: it must be 0 or more"),
        (changed(until_ns=10), "step 0 (crash): until_ns is 10: it must be after at_ns, 10"),
        (changed(until_ns=101), "step 0 (crash): until_ns is 101: the load ends at 100"),
        (changed(fault="crush"), "step 0 (crush): fault 'crush' is unknown: did you mean 'crash'?"),
        (changed(package="crahs"), "step 0 (crash): package 'crahs' is unknown: did you mean 'crash'?"),
        (changed(targets=()), "step 0 (crash): targets is empty: name at least one"),
        (changed(targets=("n1", "n1")), "step 0 (crash): targets names 'n1' twice"),
        (changed(targets=("n11",)), "step 0 (crash): target 'n11' is not a node: did you mean 'n1'?"),
        (changed(targets=("xyz",)), "step 0 (crash): target 'xyz' is not a node: choose from c1, n1, n2, s1, s2"),
        (
            changed(targets=("client>n1",)),
            "step 0 (crash): target 'client>n1' is a link, and this fault strikes nodes: choose from c1",
        ),
        (cut("n1n2"), "step 0 (cut): target 'n1n2' is not a link: write source>target: did you mean 'n1>n2'?"),
        (
            cut("n1>clint"),
            "step 0 (cut): target 'n1>clint': 'clint' is neither a node nor 'client': did you mean 'client'?",
        ),
        (cut("c1>s1"), "step 0 (cut): target 'c1>s1': this cluster has no such link: did you mean 'n1>s1'?"),
        (
            cut("n1>n2", fault="reorder", permille=5),
            "step 0 (reorder): target 'n1>n2' is a fifo link: a connection cannot reorder messages",
        ),
        (cut("n1>n2", fault="delay"), "step 0 (delay): args lacks 'latency_ns', from 0 to 3600000000000"),
        (
            cut("n1>n2", fault="bandwidth", bytes_per_s=0),
            "step 0 (bandwidth): args bytes_per_s is 0: it must be from 1 to 1000000000000",
        ),
        (
            cut("n1>n2", fault="limit-data", bytes=0),
            "step 0 (limit-data): args bytes is 0: it must be from 1 to 1000000000000",
        ),
        (cut("n1>n2", delay_ns=1), "step 0 (cut): args has 'delay_ns', which is unknown"),
        (
            changed(args={"dsk": "lost"}),
            "step 0 (crash): args has 'dsk', which is unknown: did you mean 'disk'?",
        ),
        (changed(args={"disk": "gone"}), "step 0 (crash): args disk is 'gone': it must be one of lost, torn, kept"),
        (
            changed(args={"point": "before-reply"}),
            "step 0 (crash): args point is 'before-reply': it must be one of before-replicate, before-answer",
        ),
        (
            changed(fault="clock", package="clock"),
            "step 0 (clock): args needs at least one of step_ns, drift_ppm, freeze",
        ),
        (
            changed(fault="consumer", args={"delay_ns": "long"}),
            "step 0 (consumer): args delay_ns is 'long': it must be from 1 to 3600000000000",
        ),
    ],
    ids=lambda value: value[8:60] if isinstance(value, str) else "",
)
def test_a_mistake_is_told_with_its_step_its_field_and_what_is_allowed(step: Step, line: str) -> None:
    found = lines(step, duration_ns=100)
    assert len(found) == 1
    assert found[0].startswith(line)


@pytest.mark.parametrize("fault", ["drop", "duplicate", "reorder"])
def test_a_fifo_link_is_never_asked_to_lose_or_overtake(fault: str) -> None:
    step = cut("n1>n2", fault=fault, permille=5)
    assert f"a connection cannot {fault} messages" in lines(step)[0]
    assert problems(Plan(steps=(step,)), QUORUM) == []


@pytest.mark.parametrize("step", [cut("n1>n2", fault="reset"), cut("n1>n2", fault="limit-data", bytes=500)])
def test_a_datagram_link_has_no_connection_to_strike(step: Step) -> None:
    assert lines(step) == []
    assert "is a datagram link: it has no connection" in problems(Plan(steps=(step,)), QUORUM)[0]


def test_what_a_runtime_cannot_do_is_refused_by_name() -> None:
    full = changed(fault="disk-full", package="full-disk")
    assert lines(full) == ["step 0 (disk-full): a simulated disk has no size: use --runtime docker"]
    assert problems(Plan(steps=(full,)), SMALL, runtime="docker") == []
    with pytest.raises(ScenarioError, match="simulated disk has no size"):
        validate(Plan(steps=(full,)), SMALL)


def test_a_cluster_without_failpoints_says_so() -> None:
    step = changed(args={"point": "before-answer"})
    assert "left out: this cluster has no failpoints" in problems(Plan(steps=(step,)), QUORUM)[0]


def test_overlapping_steps_are_told_by_both_numbers() -> None:
    later = changed(fault="pause", package="pause", at_ns=15, until_ns=30)
    assert lines(SOUND, later) == ["steps 0 (crash) and 1 (pause) overlap in time: both strike n1"]
    assert lines(SOUND, changed(at_ns=20, until_ns=30)) == []


def test_validate_tells_several_problems_in_one_line() -> None:
    validate(Plan(steps=(SOUND,)), SMALL, duration_ns=100)
    with pytest.raises(ScenarioError) as caught:
        validate(Plan(steps=tuple(changed(at_ns=-number) for number in range(1, 12))), SMALL)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("step 0 (crash): at_ns is -1: it must be 0 or more; step 1")
    assert "more" in text.rsplit(";", 1)[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "plan: not valid JSON"),
        (b"\xff", "plan: not valid JSON"),
        ("[]", 'plan: must be an object with a list under "steps"'),
        ('{"steps": 3}', 'plan: must be an object with a list under "steps"'),
        ('{"steps": [], "drwan": {}}', "plan: field 'drwan' is unknown: did you mean 'drawn'?"),
        ('{"steps": [], "drawn": {"a": []}}', "plan: drawn: "),
        ('{"steps": [4]}', "step 0: this must be a table, and is a whole number"),
        ('{"steps": [{"fault": "cut"}]}', "step 0: Object missing required field"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        plan_from_json(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("at_ns", "soon", "step 1: at_ns must be a whole number, and is a text"),
        ("targets", "n1", "step 1: targets must be a list, and is a text"),
        ("args", {"disk": 1.5}, "step 1: args"),
        ("untl_ns", 3, "step 1: field 'untl_ns' is unknown: did you mean 'until_ns'?"),
    ],
)
def test_a_field_of_the_wrong_shape_is_told_with_its_step(field: str, value: object, message: str) -> None:
    raw = json.loads(plan_to_json(Plan(steps=(SOUND, SOUND))))
    raw["steps"][1][field] = value
    with pytest.raises(ScenarioError) as caught:
        plan_from_json(json.dumps(raw))
    assert str(caught.value).startswith(message)


@settings(max_examples=100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["steps", "drawn", "fault", "package", "at_ns", "until_ns", "targets", "args", "x"]),
                inner,
            )
        ),
    )
)
def test_whatever_the_file_holds_it_is_a_plan_as_written_or_a_scenario_error(raw: object) -> None:
    with contextlib.suppress(ScenarioError):
        plan = plan_from_json(json.dumps({"steps": [raw]}))
        assert plan.steps == (msgspec.convert(raw, Step),)
        assert isinstance(problems(plan, SMALL), list)


def test_a_plan_nested_beyond_reason_is_refused() -> None:
    with pytest.raises(ScenarioError):
        plan_from_json("[" * 100_000)
