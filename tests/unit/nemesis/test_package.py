from collections import Counter
from hashlib import blake2b
from itertools import combinations

import msgspec
import pytest

from harness.core.draw import Draw
from harness.core.errors import ScenarioError
from nemesis.fault import Package
from nemesis.overlap import conflict
from nemesis.plan import Plan, Step
from nemesis.registry import PACKAGES
from nemesis.swarm import IN_CONTAINERS, UNITS_IN_CONTAINERS, draw_plan
from nemesis.topology import CLIENT, Topology
from nemesis.validation import plan_from_json, plan_to_json, problems
from tests.unit.nemesis.topologies import LONE, QUORUM, SMALL

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
SEEDS = range(500)
DECLARED = ("membership", "rolling-upgrade")  # They need a procedure of the cluster.
IN_CONTAINERS_ONLY = ("full-disk", "failover", "late", "bit-rot", "packets", "rolling-restart")
FITTING = {
    "small": (SMALL, tuple(name for name in PACKAGES if name not in ("datagrams", "packets", "bit-rot", *DECLARED))),
    "quorum": (
        QUORUM,
        tuple(name for name in PACKAGES if name not in ("slow-subscriber", *IN_CONTAINERS_ONLY, *DECLARED)),
    ),
    "lone": (LONE, ("crash", "pause", "slow-link", "clock", "power")),
}
RUNTIME = {"small": "docker"}  # Where full disks and failovers can be.


def plan(seed: int, where: str = "small", duration_ns: int = MINUTE) -> Plan:
    topology, names = FITTING[where]
    return draw_plan(topology, [PACKAGES[name] for name in names], Draw(seed), duration_ns=duration_ns)


def in_force(step: Step, other: Step) -> bool:
    return step.at_ns < other.until_ns and other.at_ns < step.until_ns


@pytest.mark.parametrize("where", sorted(FITTING))
def test_every_plan_is_sound_and_survives_its_file(where: str) -> None:
    for seed in SEEDS:
        drawn = plan(seed, where)
        assert problems(drawn, FITTING[where][0], duration_ns=MINUTE, runtime=RUNTIME.get(where, "sim")) == []
        assert plan_from_json(plan_to_json(drawn)) == drawn


def test_the_same_seed_draws_the_same_plan_and_another_does_not() -> None:
    assert all(plan(seed) == plan(seed) for seed in range(50))
    assert len({plan_to_json(plan(seed)) for seed in range(50)}) == 50


@pytest.mark.parametrize("where", sorted(FITTING))
def test_every_plan_has_three_packages_and_every_package_appears(where: str) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        packages = {step.package for step in plan(seed, where).steps}
        assert len(packages) >= 3
        seen.update(packages)
    assert set(seen) == set(FITTING[where][1])
    assert min(seen.values()) > 100


def test_every_kind_of_fault_and_argument_appears() -> None:
    steps = [step for seed in SEEDS for where in FITTING for step in plan(seed, where).steps]
    assert {step.fault for step in steps} == {
        "cut", "stall", "delay", "bandwidth", "drop", "duplicate", "reorder", "crash", "pause", "consumer", "clock",
        "reset", "limit-data", "disk-full", "failover", "late", "restart",
    }  # fmt: skip
    assert {name for step in steps for name in step.args} == {
        "latency_ns", "jitter_ns", "bytes_per_s", "permille", "disk", "point", "delay_ns", "step_ns", "drift_ppm",
        "freeze", "bytes",
    }  # fmt: skip


def test_windows_are_spread_and_leave_time_free_of_faults() -> None:
    for seed in SEEDS:
        steps = plan(seed).steps
        assert steps[0].at_ns == 2 * SECOND
        assert max(step.until_ns for step in steps) <= MINUTE - 6 * SECOND
        assert any(step.at_ns > MINUTE // 2 for step in steps)
        faulty_ns = sum(step.until_ns - step.at_ns for step in steps)
        assert faulty_ns > MINUTE // 6
        rests = [max(s.until_ns for s in steps[:at]) for at in range(1, len(steps))]
        gaps = [step.at_ns - rest for step, rest in zip(steps[1:], rests, strict=True) if step.at_ns >= rest]
        assert len(gaps) >= 2
        assert min(gaps) >= SECOND // 2


def test_windows_are_long_enough_to_bite_and_those_that_stop_everything_are_short() -> None:
    data = {"n1", "n2"}
    for seed in SEEDS:
        steps = plan(seed).steps
        for step in steps:
            is_total = step.fault in ("crash", "pause") and data <= set(step.targets) and "point" not in step.args
            length_ns = step.until_ns - step.at_ns
            assert (length_ns < SECOND) if is_total else (600_000_000 <= length_ns <= 8 * SECOND)
            if is_total:
                assert not any(in_force(step, other) for other in steps if other is not step)


def test_never_two_faults_in_force_of_which_one_hides_the_other() -> None:
    together = 0
    for seed in SEEDS:
        for step, other in combinations(plan(seed).steps, 2):
            assert conflict(step, other) is None
            together += in_force(step, other)
    assert together > 300


def test_what_was_drawn_is_told() -> None:
    drawn = plan(7)
    assert set(drawn.drawn) >= {"packages", "gap between faults", "longest fault", "overlap"}
    counts = Counter(step.package for step in drawn.steps)
    for package, count in counts.items():
        assert str(drawn.drawn[package]).startswith("once, " if count == 1 else f"{count} times, ")


@pytest.mark.parametrize("duration_ns", [SECOND, 5 * SECOND, 20 * SECOND])
def test_a_short_run_has_as_many_packages_in_shorter_windows(duration_ns: int) -> None:
    for seed in range(100):
        steps = plan(seed, duration_ns=duration_ns).steps
        assert len({step.package for step in steps}) >= 3
        assert all(0 < step.at_ns < step.until_ns < duration_ns for step in steps)


def test_requests_are_late_for_long_enough_that_clients_hang_up_or_not_at_all() -> None:
    late, *others = (PACKAGES[name] for name in ("late", "crash", "pause", "reset"))

    def drawn(seconds: int, *packages: Package) -> Counter[str]:
        """The steps of each package; of `late` there is none under two seconds."""
        shape = {"duration_ns": seconds * SECOND, "units": UNITS_IN_CONTAINERS}
        steps = [step for seed in range(60) for step in draw_plan(SMALL, packages, Draw(seed), **shape).steps]
        assert all(step.until_ns - step.at_ns >= late.least_ns > SECOND for step in steps if step.fault == "late")
        return Counter(step.package for step in steps)

    assert drawn(8, late)["late"] >= 60
    assert min(drawn(12, late, *others).values()) > 20
    assert drawn(8, late, *others).keys() == {package.name for package in others}
    with pytest.raises(ScenarioError, match=r"'late' needs 2 s, and a load of 2 s has room for faults of 1\.5 s"):
        drawn(2, late)


def test_a_long_run_goes_on_with_windows_of_seconds() -> None:
    steps = plan(1, duration_ns=10 * MINUTE).steps
    assert len(steps) > 50
    assert max(step.until_ns - step.at_ns for step in steps) <= 8 * SECOND
    assert max(step.until_ns for step in steps) > 9 * MINUTE


def test_the_draw_of_faults_moves_no_other_stream() -> None:
    draw = Draw(3)
    draw_plan(SMALL, [PACKAGES[name] for name in ("crash", "pause", "clock")], draw, duration_ns=MINUTE)
    assert list(draw.positions()) == ["faults"]


def test_no_package_means_no_step() -> None:
    assert draw_plan(SMALL, (), Draw(1), duration_ns=MINUTE) == Plan(steps=())


@pytest.mark.parametrize(
    ("name", "topology", "reason"),
    [
        ("datagrams", SMALL, "no link is a datagram link"),
        ("flaky-link", Topology(nodes=(("n1", "a"),), links={("a", "a"): "datagram"}), "no link is a connection"),
        ("reset", Topology(nodes=(("n1", "a"),), links={("a", "a"): "datagram"}), "no link is a connection"),
        ("packets", SMALL, "no servers know each other by name"),
        ("slow-subscriber", QUORUM, "no node has the role subscriber"),
        ("slow-link", Topology(nodes=(("n1", "data"),), links={}), "no link is declared"),
        ("crash", Topology(nodes=(), links={}), "there is no node"),
        ("partition", Topology(nodes=(("n1", "data"),), links={("a", "b"): "fifo"}), "found nothing to strike"),
    ],
)
def test_a_package_without_anything_to_strike_is_refused_by_name(name: str, topology: Topology, reason: str) -> None:
    with pytest.raises(ScenarioError, match=f"{name}.*{reason}"):
        draw_plan(topology, [PACKAGES[name]], Draw(1), duration_ns=MINUTE)


def test_what_containers_add_is_drawn_for_who_asks_and_strikes_connections_only() -> None:
    stream = Draw(5).stream("faults")
    for name in IN_CONTAINERS:
        strikes = [PACKAGES[name].draw(QUORUM, stream) for _ in range(200)]
        found = [strike for strike in strikes if strike is not None]
        assert len(found) > 30
        assert all(CLIENT in link for strike in found if strike.fault != "disk-full" for link in strike.targets)


def test_a_full_disk_strikes_one_node_of_those_that_hold_the_data() -> None:
    stream = Draw(5).stream("faults")
    strikes = [PACKAGES["full-disk"].draw(SMALL, stream) for _ in range(50)]
    assert {strike.targets for strike in strikes if strike is not None} == {("n1",), ("n2",)}


def test_the_plans_of_seeds_are_those_of_earlier_versions() -> None:
    """Packages were added; the numbers in the README, and whoever noted a seed, count on the plans of the others."""
    names = ("partition", "crash", "power", "pause", "slow-subscriber", "slow-link", "clock")
    packages = [PACKAGES[name] for name in names]
    plans = [draw_plan(SMALL, packages, Draw(seed), duration_ns=MINUTE) for seed in range(100)]
    texts = [plan_to_json(msgspec.structs.replace(plan, drawn={})) for plan in plans]  # Words may change; steps not.
    texts = [text.replace('"power"', '"lost-writes"') for text in texts]  # Its name at that time.
    assert blake2b("".join(texts).encode(), digest_size=8).hexdigest() == "263ca1e094457603"


def test_packages_have_different_colours_and_say_what_they_do() -> None:
    assert len({package.colour for package in PACKAGES.values()}) == len(PACKAGES)
    assert all(
        package.about and package.draw.__doc__ and package.heals and package.probe for package in PACKAGES.values()
    )


def test_a_node_without_a_clock_is_never_struck_by_a_wrong_one() -> None:
    topology = msgspec.structs.replace(SMALL, clockless=("s1",))
    drawn = [draw_plan(topology, [PACKAGES["clock"]], Draw(seed), duration_ns=MINUTE) for seed in SEEDS[:100]]
    assert all("s1" not in step.targets for each in drawn for step in each.steps)
    wrong = Step(fault="clock", package="clock", at_ns=0, until_ns=SECOND, targets=("s1",), args={"freeze": 1})
    assert problems(Plan(steps=(wrong,)), topology) == ["step 0 (clock): target 's1' has no separate clock"]
