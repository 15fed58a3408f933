"""The compare-and-set store: versions, requests that come twice, counters, listings, and recovery."""

from clusters.parts.cas_store import ABSENT, Cas, CasStore, Get, Held, List, Listing, Next, StoreRequest, Write


class Kept:
    """A store with its disk."""

    def __init__(self) -> None:
        self.disk: list[Write] = []
        self.store = CasStore(())

    def held(self, request: StoreRequest) -> Held:
        reply, write = self.store.serve(request)
        self.disk += [] if write is None else [write]
        assert isinstance(reply, Held)
        return reply


def test_a_name_is_changed_only_at_the_version_that_is_expected() -> None:
    kept = Kept()
    first = kept.held(Cas("a", ABSENT, b"1"))
    assert (first.is_done, first.value) == (True, b"1")
    late = kept.held(Cas("a", ABSENT, b"2"))
    assert (late.is_done, late.value, late.version) == (False, b"1", first.version)
    assert kept.held(Cas("a", first.version, b"2")).is_done
    assert len(kept.disk) == 2


def test_a_change_that_comes_twice_succeeds_again_and_changes_nothing() -> None:
    kept = Kept()
    first = kept.held(Cas("a", ABSENT, b"1"))
    assert kept.held(Cas("a", ABSENT, b"1")) == first
    removed = Cas("a", first.version, None)
    assert kept.held(removed).is_done
    assert kept.held(removed).is_done
    assert len(kept.disk) == 2


def test_a_version_is_never_given_again() -> None:
    kept = Kept()
    first = kept.held(Cas("a", ABSENT, b"1"))
    kept.held(Cas("a", first.version, None))
    again = kept.held(Cas("a", ABSENT, b"1"))
    assert again.version > first.version
    assert not kept.held(Cas("a", first.version, b"2")).is_done


def test_a_counter_never_gives_a_number_twice_even_after_a_restart() -> None:
    kept = Kept()
    given = [kept.held(Next("n")).value for _ in range(3)]
    kept.store = CasStore(kept.disk)
    assert [*given, kept.held(Next("n")).value] == [b"1", b"2", b"3", b"4"]


def test_a_listing_has_what_is_there_in_the_order_of_names() -> None:
    kept = Kept()
    for name in ("b/2", "b/1", "c"):
        kept.held(Cas(name, ABSENT, name.encode()))
    gone = kept.held(Cas("b/3", ABSENT, b""))
    kept.held(Cas("b/3", gone.version, None))
    for store in (kept.store, CasStore(kept.disk)):
        reply, write = store.serve(List("b/"))
        assert isinstance(reply, Listing)
        assert ([entry.name for entry in reply.entries], write) == (["b/1", "b/2"], None)
        absent, _ = store.serve(Get("b/3"))
        assert absent == Held("b/3", ABSENT, None)
