"""The replicated log: what was decided stays, in one order, whatever crashes, is lost or is cut off."""

from random import Random

import pytest

from clusters.parts.log_messages import Entry, TimeoutNow
from clusters.parts.quorum_log import quorum
from tests.amount import count
from tests.unit.clusters.parts.log_world import MEMBERS, MS, World

SEEDS = count(40)


@pytest.mark.parametrize(("members", "least"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_two_quorums_share_a_member(members: int, least: int) -> None:
    assert quorum(MEMBERS[:1] * members) == least
    assert 2 * least > members


def troubled(seed: int) -> tuple[World, list[str]]:
    """A run with crashes and cuts; and the commands that were proposed."""
    world, draws, proposed = World(seed), Random(seed), list[str]()
    for number in range(40):
        world.run(draws.randint(5, 120) * MS)
        leader = world.leader()
        if leader is not None:
            proposed.append(f"x{number}")
            leader.log.propose(proposed[-1])
        match draws.randrange(8):
            case 0 if len(world.replicas) == len(MEMBERS):
                world.crash(draws.choice(MEMBERS))
            case 1 | 2:
                for node in set(MEMBERS) - world.replicas.keys():
                    world.start(node)
            case 3:
                world.cut = frozenset(draws.sample(MEMBERS, draws.randint(0, 1)))
            case 4 if leader is not None:
                leader.log.transfer(draws.choice(MEMBERS))
    world.cut = frozenset()
    for node in set(MEMBERS) - world.replicas.keys():
        world.start(node)
    world.run(3000 * MS)
    return world, proposed


def test_decided_entries_stay_and_all_replicas_apply_the_same() -> None:
    """The world itself asserts that no decided entry changes, that a term has one leader, and that leases exclude."""
    goals, applied = set[str](), 0
    for seed in range(SEEDS):
        try:
            world, proposed = troubled(seed)
        except AssertionError as failure:
            failure.add_note(f"seed {seed}")
            raise
        orders = [replica.applied for replica in world.replicas.values()]
        assert orders[0] == orders[1] == orders[2], f"seed {seed}"
        commands = [command for command in orders[0] if command is not None]
        assert commands == [each for each in proposed if each in set(commands)], f"seed {seed}"
        leader = world.leader()
        assert leader is not None, f"seed {seed}: all is healed, and none leads"
        goals, applied = goals | world.goals, applied + len(commands)
    assert applied > 10 * SEEDS
    wanted = {"a shard got its first leader", "a shard got another leader", "a leader was deposed"}
    assert goals == wanted | {"a follower cut entries that were never decided"}


def test_a_leader_without_a_quorum_decides_nothing_and_loses_its_lease() -> None:
    world = World(1)
    world.run(2000 * MS)
    leader = world.leader()
    assert leader is not None
    world.cut = frozenset({leader.node})
    index = leader.log.propose("lost")
    world.run(1000 * MS)
    assert (leader.log.has_lease(), leader.log.commit < index) == (False, True)
    world.cut = frozenset()
    world.run(2000 * MS)
    assert all("lost" not in replica.applied for replica in world.replicas.values())


def test_a_transfer_ends_the_lease_and_the_heir_leads() -> None:
    world = World(2)
    world.run(2000 * MS)
    leader = world.leader()
    assert leader is not None
    heir = next(node for node in MEMBERS if node != leader.node)
    leader.log.transfer(heir)
    assert (leader.log.has_left, leader.log.has_lease()) == (True, False)
    world.run(150 * MS)  # Less than anyone's patience.
    assert world.replicas[heir].log.is_leader


def test_an_order_to_stand_counts_in_its_own_term_only() -> None:
    world = World(3)
    world.run(2000 * MS)
    follower = next(replica for replica in world.replicas.values() if not replica.log.is_leader)
    term = follower.log.term
    follower.log.handle(MEMBERS[0], TimeoutNow(7, term - 1))
    assert follower.log.term == term
    follower.log.handle(MEMBERS[0], TimeoutNow(7, term))
    assert follower.log.term == term + 1


def test_a_log_that_is_not_there_from_the_beginning_starts_with_an_entry_that_is_decided() -> None:
    world = World(4)
    replica = world.replicas[MEMBERS[0]]
    replica.log.found(Entry(0, "first"))
    assert (replica.applied, replica.log.commit) == (["first"], 1)
