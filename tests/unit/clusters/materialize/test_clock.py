"""The tamed clock: it stands still after a step back, rises at twice the speed at most, and is right soon after."""

from typing import Any

from clusters.materialize.coordinator.clock import Clock
from clusters.materialize.shape import MS, UNIT_NS


class Wrong:
    """A node whose wall clock is off."""

    def __init__(self) -> None:
        self.ns, self.off_ns, self.bugs = 0, 0, frozenset[str]()

    def clock_ns(self) -> int:
        return self.ns + self.off_ns

    def now_ns(self) -> int:
        return self.ns


def readings(site: Wrong, clock: Clock, until_ms: int) -> list[int]:
    found = []
    while site.ns < until_ms * MS:
        site.ns += 50 * MS
        found.append(clock.now() * UNIT_NS // MS)
    return found


def test_a_step_back_holds_the_reading_until_it_is_healed() -> None:
    """Seed 71047: ingestion whose clock had been 28 s behind for a second gave low timestamps for half a minute."""
    site: Any = Wrong()
    clock = Clock(site)
    before = readings(site, clock, 1000)[-1]
    site.off_ns = -28_000 * MS
    assert set(readings(site, clock, 2000)) == {before}
    site.off_ns = 0
    assert readings(site, clock, 3100)[-1] == 3100


def test_a_step_forward_shows_at_twice_the_speed() -> None:
    site: Any = Wrong()
    clock = Clock(site)
    readings(site, clock, 1000)
    site.off_ns = 3_600_000 * MS
    assert readings(site, clock, 2000)[-1] == 3000
    site.off_ns = 0
    held = readings(site, clock, 4000)
    assert held == sorted(held)
    assert held[-1] == 4000


def test_a_clock_that_was_behind_at_the_start_is_right_once_it_is_healed() -> None:
    site: Any = Wrong()
    site.ns, site.off_ns = 30_000 * MS, -28_000 * MS
    clock = Clock(site, start=3060)
    assert readings(site, clock, 31_000)[-1] == 3000
    site.off_ns = 0
    assert readings(site, clock, 31_100)[0] == 30_600
    assert readings(site, clock, 32_000)[-1] == 32_000


def test_a_leader_that_begins_ahead_of_its_clock_waits_for_it() -> None:
    site: Any = Wrong()
    site.ns = 1000 * MS
    clock = Clock(site, start=160)
    assert readings(site, clock, 1500) == [*range(1050, 1501, 50)]
