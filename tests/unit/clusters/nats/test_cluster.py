"""What the cluster declares fits together; how lists are stored; and which errors are definite."""

import asyncio

import pytest

from checkers.catalogue import RECORDS
from checkers.words import models
from clusters.nats import Cluster, line, rows
from clusters.nats.client import NatsClient
from clusters.nats.errors import DEFINITE, is_definite
from clusters.nats.line import Line, Stored
from clusters.nats.promises import GENUINE
from clusters.nats.service import SERVERS, service
from clusters.servers.client import Broken, Progress, Refused
from harness.core.generators.generator import Context, Planned
from harness.core.machine import Settings
from harness.core.record import Json, MicroOp
from harness.core.seams import Address, Invocation, Wheel
from harness.scenario.workloads import WORKLOADS, WorkloadOptions
from nemesis.registry import PACKAGES

ALWAYS = Settings(options={"version": "2.15.1", "sync": "always"})


def test_what_the_cluster_names_exists() -> None:
    cluster = Cluster()
    assert {name for promise in cluster.promises for name in promise.forbids} <= {*RECORDS, *models.MODELS}
    assert set(cluster.faults) <= set(PACKAGES)
    assert set(cluster.workloads) <= set(WORKLOADS)
    assert len({promise.id for promise in cluster.promises}) == len(cluster.promises)


def test_promises_of_loss_hold_only_if_a_message_is_synced_before_it_is_acknowledged() -> None:
    assert Cluster().promised(ALWAYS) == Cluster().promises
    for interval in ("default", "1s"):
        assert Cluster().promised(Settings(options={"sync": interval})) == (GENUINE,)


def test_all_servers_have_one_list_of_routes_and_the_chosen_sync_interval() -> None:
    texts = {
        each: [*service(node, {}, Settings(options=ALWAYS.options | {"sync": each})).files.values()]
        for node in SERVERS
        for each in ("always", "default")
    }
    assert "sync_interval: always" in texts["always"][0]
    assert "sync_interval" not in texts["default"][0]
    routes = {service(node, {}, ALWAYS).files["/etc/seamark-nats.conf"].partition("routes")[2] for node in SERVERS}
    assert len(routes) == 1
    [program] = service(SERVERS[0], {}, ALWAYS).programs
    assert isinstance(program, Wheel)
    assert len(program.sha256) == 64


@pytest.mark.parametrize("key", [0, 17, "r0.1", "weird key >*", [1, "a"]])
def test_each_key_has_a_subject_of_two_tokens_of_which_it_can_be_read_back(key: Json) -> None:
    subject = rows.subject_of(key)
    assert subject.count(".") == 1
    assert not set(subject) & set(" >*\t")
    assert rows.key_of(subject) == key


def test_a_damaged_subject_is_a_key_that_no_client_used() -> None:
    assert rows.key_of("log.xzz") == "damaged: log.xzz"
    assert rows.key_of("lag.7") == f"damaged: {b'lag.7'.hex()}"


def test_only_refusals_before_a_message_is_stored_are_definite() -> None:
    assert all(map(is_definite, DEFINITE))
    assert not any(map(is_definite, (0, 10008, 10023, 10047, 10074, 10077)))
    with pytest.raises(Refused) as refused:
        line._checked({"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence: 3"}})
    assert refused.value.is_definite
    with pytest.raises(Refused) as refused:
        line._checked({"error": {"code": 503, "err_code": 10008, "description": "system temporarily unavailable"}})
    assert not refused.value.is_definite


class Stream(Line):
    """A stream in memory, with a line to it."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self.trouble = trouble

    async def connected(self, within_s: float) -> None: ...

    async def close(self) -> None: ...

    async def publish(self, subject: str, payload: bytes, *, after: int | None = None) -> int:
        last = max((number for number, (name, _) in enumerate(self.messages, 1) if name == subject), default=0)
        if after is not None and after != last:
            raise Refused(f"10071: wrong last sequence: {last}", is_definite=True)
        if self.trouble is not None:
            raise self.trouble
        self.messages.append((subject, payload))
        return len(self.messages)

    async def stored(self, subject: str, sequence: int) -> Stored | None:
        found = (
            Stored(number, text)
            for number, (name, text) in enumerate(self.messages, 1)
            if name == subject and number >= sequence
        )
        return next(found, None)


class Client(NatsClient):
    def __init__(self, stream: Stream) -> None:
        super().__init__(0, {SERVERS[0]: Address("nowhere", 0)}, ALWAYS)
        self.stream = stream

    def _dial(self, address: Address) -> Stream:
        return self.stream


def invoked(client: Client, *mops: MicroOp) -> tuple[str, list[Json], int | None]:
    done = asyncio.run(client.invoke(Invocation(f="txn", mops=mops), 10**9))
    return done.outcome, [mop.value for mop in done.mops or ()], done.commit_ts


def test_lists_are_the_messages_of_their_subjects_and_positions_those_of_the_stream() -> None:
    client = Client(Stream())
    assert invoked(client, MicroOp("append", 1, 7)) == ("ok", [7], 1)
    assert invoked(client, MicroOp("append", 2, 5)) == ("ok", [5], 2)
    assert invoked(client, MicroOp("append", 1, 8)) == ("ok", [8], 3)
    assert invoked(client, MicroOp("r", 1)) == ("ok", [[7, 8]], None)
    assert invoked(client, MicroOp("r", 1), MicroOp("append", 1, 9)) == ("ok", [[7, 8], 9], 4)
    assert invoked(client, MicroOp("r", 3), MicroOp("append", 3, 1), MicroOp("r", 3)) == ("ok", [[], 1, [1]], 5)


def test_an_append_to_a_list_that_has_changed_since_it_was_read_fails() -> None:
    class Overtaken(Stream):
        async def stored(self, subject: str, sequence: int) -> Stored | None:
            found = await super().stored(subject, sequence)
            if found is None:
                self.messages.append((subject, b"99"))
            return found

    assert invoked(Client(Overtaken()), MicroOp("r", 1), MicroOp("append", 1, 9))[0] == "fail"


def test_a_client_goes_to_the_next_server_after_some_operations_and_after_each_error() -> None:
    class Everywhere(NatsClient):
        def _dial(self, address: Address) -> Stream:
            return Stream(Broken("gone") if address.port == 2 else None)

    doors = {node: Address("nowhere", number) for number, node in enumerate(SERVERS)}

    async def asked() -> list[str | None]:
        client = Everywhere(0, doors, ALWAYS)
        append = Invocation(f="txn", mops=(MicroOp("append", 1, 7),))
        return [(await client.invoke(append, 10**9)).node for _ in range(70)]

    nodes = asyncio.run(asked())
    assert nodes == ["n1"] * 32 + ["n2"] * 32 + ["n3"] + ["n1"] * 5


def test_a_publication_without_an_answer_is_unknown_and_one_that_no_server_takes_has_failed() -> None:
    for trouble, outcome in (
        (Broken("the connection has ended"), "info"),
        (TimeoutError(), "info"),
        (Refused("10008: system temporarily unavailable"), "info"),
        (Refused("no responders", is_definite=True), "fail"),
    ):
        assert invoked(Client(Stream(trouble)), MicroOp("append", 1, 7))[0] == outcome
        assert Progress().has_sent_write is False


def test_each_operation_of_its_workloads_has_one_list_and_one_append_at_most() -> None:
    for name in Cluster().workloads:
        options = WorkloadOptions(seed=3, rate_per_s=200, duration_ns=2 * 10**9, threads=4)
        answer = WORKLOADS[name](options).load.op(Context(time_ns=0, free=(0,), processes=(0,)))
        count = 0
        while answer is not None and isinstance(answer[0], Planned):
            mops = answer[0].mops or ()
            assert len({mop.key for mop in mops}) == 1
            assert sum(mop.f == "append" for mop in mops) <= 1
            count += 1
            answer = answer[1].op(Context(time_ns=0, free=(0,), processes=(0,)))
        assert count > 100
