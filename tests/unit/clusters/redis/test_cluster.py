"""What the clusters declare fits together; how rows are stored; what the client makes of answers; and the ack floor."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from redis.exceptions import ExecAbortError, ResponseError

from checkers.catalogue import RECORDS
from checkers.words import models
from clusters.redis import Cluster, SentinelCluster, planted, promises, rows
from clusters.redis.client import RedisClient
from clusters.redis.errors import DEFINITE, is_definite
from clusters.redis.line import Command, Line
from clusters.redis.masters import guides, master_by
from clusters.redis.service import MASTER, SENTINELS, SERVERS, service
from clusters.redis.subscriber import RedisSubscriber
from clusters.servers.client import Broken, Refused
from harness.core.errors import ScenarioError
from harness.core.machine import Delivery, NodeId, Settings
from harness.core.record import Json, MicroOp
from harness.core.seams import Address, Doors, Invocation
from harness.scenario.workloads import WORKLOADS
from nemesis.registry import PACKAGES

OPTIONS = {"server": "redis", "appendfsync": "always", "confirm": "none", "repair": "yes"}
ALWAYS = Settings(options=OPTIONS)
HERE = Address("nowhere", 0)
DOORS: Doors = {MASTER: HERE}


@pytest.mark.parametrize("cluster", [Cluster(), SentinelCluster()], ids=lambda each: each.name)
def test_what_each_cluster_names_exists(cluster: Any) -> None:
    assert {name for promise in cluster.promises for name in promise.forbids} <= {*RECORDS, *models.MODELS}
    assert set(cluster.faults) <= set(PACKAGES)
    assert set(cluster.workloads) <= set(WORKLOADS)
    assert len({promise.id for promise in cluster.promises}) == len(cluster.promises)
    assert {pair for pair, link in cluster.links.items() if link == "direct"} >= (
        {("replica", "master")} if cluster.name == "redis" else {("sentinel", "server"), ("server", "sentinel")}
    )


def test_promises_of_loss_hold_only_if_files_are_synced_before_an_answer_and_never_with_sentinel() -> None:
    def held(**options: str) -> tuple[str, ...]:
        return tuple(each.id for each in Cluster().promised(Settings(options=OPTIONS | options)))

    genuine = ("REDIS-4", "REDIS-15")
    assert held() == tuple(each.id for each in promises.ALL)
    assert held(appendfsync="everysec") == genuine
    assert held(appendfsync="everysec", confirm="wait") == genuine
    assert held(appendfsync="everysec", confirm="waitaof") == ("REDIS-3", *genuine)
    assert tuple(each.id for each in SentinelCluster().promised(ALWAYS)) == genuine


def test_servers_have_the_chosen_settings_and_sentinels_one_master_by_name() -> None:
    def text(node: NodeId, *bugs: str, has_sentinels: bool = True) -> str:
        settings = Settings(options=OPTIONS, bugs=frozenset(bugs))
        [made] = service(node, {}, settings, has_sentinels=has_sentinels).files.values()
        return made

    assert "appendfsync always" in text(MASTER)
    assert "appendonly no" in text(MASTER, planted.NO_FILE)
    assert ["replicaof n1 6379" in text(node) for node in SERVERS] == [False, True, True]
    assert ["replica-priority 0" in text(node, has_sentinels=False) for node in SERVERS] == [False, True, True]
    assert all("sentinel monitor seamark n1 6379 2\n" in text(node) for node in SENTINELS)
    starts = {
        repair: service(MASTER, {}, Settings(options=OPTIONS | {"repair": repair}), has_sentinels=False).command[-1]
        for repair in ("yes", "no")
    }
    assert {repair: "redis-check-aof --fix" in start for repair, start in starts.items()} == {"yes": True, "no": False}
    with pytest.raises(ScenarioError, match="server=valkey"):
        service(MASTER, {}, Settings(options=OPTIONS | {"confirm": "waitaof"}), has_sentinels=False)


def test_positions_ascend_with_ids_and_entries_show_each_write_in_order() -> None:
    ids = [b"1795829000000-0", b"1795829000000-1", b"1795829000000-1048575", b"1795829000001-0"]
    assert [rows.position_of(each) - rows.position_of(ids[0]) for each in ids] == [0, 1, (1 << 20) - 1, 1 << 20]
    assert rows.position_of(ids[-1]) < 1 << 63
    mops = (MicroOp("append", 1, 7), MicroOp("r", 1), MicroOp("w", "a", None))
    found = list(rows.deliveries(b"5-3", [rows.FIELD, rows.entry(mops)]))
    assert [(row.key, row.value, row.position, row.ordinal, row.unit_rows) for row in found] == [
        (1, 7, (5 << 20) + 3, 0, 2),
        ("a", None, (5 << 20) + 3, 1, 2),
    ]


@pytest.mark.parametrize("fields", [(), (b"writes",), (b"writes", b"\xff"), (b"writes", b"7"), (b"writes", b"[[1]]")])
def test_a_damaged_entry_is_an_observation_that_no_client_wrote(fields: Sequence[bytes]) -> None:
    [row] = rows.deliveries(b"5-3", fields)
    assert isinstance(row.key, str)
    assert row.key.startswith("damaged: ")


class Server(Line):
    """A server in memory, and a line to it: the answer to each command by its first word."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(HERE)
        self.sent: list[Command] = []
        self.answers = answers

    async def connected(self, within_s: float) -> None: ...

    async def close(self) -> None: ...

    async def run(self, *commands: Command, within_s: float | None = None) -> list[Any]:
        self.sent += commands
        found = [self.answers.get(str(command[0]).replace("-", "_"), b"OK") for command in commands]
        for answer in found:
            if isinstance(answer, Exception):
                raise answer
        return found


class Client(RedisClient):
    def __init__(self, server: Server, settings: Settings = ALWAYS) -> None:
        super().__init__(0, DOORS, settings)
        self.server = server

    def _dial(self, address: Address) -> Server:
        return self.server


def done(server: Server, invocation: Invocation, settings: Settings = ALWAYS) -> Any:
    return asyncio.run(Client(server, settings).invoke(invocation, 10**9))


def transaction(*mops: MicroOp) -> Invocation:
    return Invocation(f="txn", mops=mops)


APPEND = transaction(MicroOp("append", 1, 7))


def test_a_transaction_is_sent_at_once_and_the_id_of_its_entry_is_its_position() -> None:
    server = Server(EXEC=[1, [b"7"], None, b"5-3"])
    ended = done(server, transaction(MicroOp("append", 1, 7), MicroOp("r", 1), MicroOp("r", "a")))
    assert [command[0] for command in server.sent] == ["MULTI", "RPUSH", "LRANGE", "GET", "XADD", "EXEC"]
    assert (ended.outcome, [mop.value for mop in ended.mops]) == ("ok", [7, [7], None])
    assert (ended.txn, ended.commit_ts, ended.node) == ((5 << 20) + 3, (5 << 20) + 3, "n1")


def test_a_transaction_that_only_reads_adds_no_entry() -> None:
    server = Server(EXEC=[[b"7", b"8"]])
    ended = done(server, transaction(MicroOp("r", 1)))
    assert ended.mops[0].value == [7, 8]
    assert (ended.commit_ts, [command[0] for command in server.sent]) == (None, ["MULTI", "LRANGE", "EXEC"])


@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        (Broken("the connection has ended"), "info"),
        (TimeoutError(), "info"),
        (Refused("OOM"), "info"),
        (Refused("EXECABORT", is_definite=True), "fail"),
    ],
    ids=str,
)
def test_a_write_without_an_answer_is_unknown_and_one_that_exec_refuses_has_failed(
    trouble: Exception, outcome: str
) -> None:
    assert done(Server(EXEC=trouble), APPEND).outcome == outcome
    assert done(Server(EXEC=trouble), transaction(MicroOp("r", 1))).outcome == "fail"


@pytest.mark.parametrize(
    ("confirm", "answers", "outcome"),
    [
        ("wait", {"WAIT": 0}, "info"),
        ("wait", {"WAIT": 2}, "ok"),
        ("waitaof", {"WAITAOF": [1, 0]}, "info"),
        ("waitaof", {"WAITAOF": [0, 1]}, "info"),
        ("waitaof", {"WAITAOF": [1, 1]}, "ok"),
    ],
)
def test_a_write_that_too_few_servers_confirm_is_unknown(confirm: str, answers: dict[str, Any], outcome: str) -> None:
    settings = Settings(options=OPTIONS | {"confirm": confirm})
    assert done(Server(EXEC=[1, b"5-3"], **answers), APPEND, settings).outcome == outcome


@pytest.mark.parametrize(
    ("held", "executed", "outcome"), [(b"1", [b"OK"], "ok"), (b"1", None, "fail"), (b"2", [b"OK"], "fail")]
)
def test_a_compare_and_set_watches_its_register(held: bytes, executed: Any, outcome: str) -> None:
    server = Server(GET=held, EXEC=executed)
    assert done(server, Invocation(f="cas", value=["a", [1, 3]])).outcome == outcome
    assert [command[0] for command in server.sent][:2] == ["WATCH", "GET"]
    unwatched = Server(GET=held, EXEC=executed)
    done(unwatched, Invocation(f="cas", value=["a", [1, 3]]), Settings(options=OPTIONS, bugs=frozenset(["no-watch"])))
    assert "WATCH" not in [command[0] for command in unwatched.sent]


def test_only_a_refused_exec_is_definite() -> None:
    assert list(filter(is_definite, (each.__name__ for each in (ExecAbortError, ResponseError)))) == [*DEFINITE]


def test_errors_inside_an_answer_are_found_and_do_not_count_as_definite() -> None:
    class Connection:
        def __init__(self, *answers: Any) -> None:
            self.answers = list(answers)

        def pack_commands(self, commands: Sequence[Command]) -> Sequence[Command]:
            return commands

        async def send_packed_command(self, _: Sequence[Command], check_health: bool) -> None: ...

        async def read_response(self, disable_decoding: bool) -> Any:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    async def ran(*answers: Any) -> Any:
        line = Line(HERE)
        line._connection = Connection(b"OK", b"QUEUED", *answers)
        return await line.transaction(("RPUSH", "k", 1))

    assert asyncio.run(ran([1])) == [[1]]
    for answer, is_sure in (([ResponseError("WRONGTYPE")], False), (ExecAbortError("discarded"), True)):
        with pytest.raises(Refused) as refused:
            asyncio.run(ran(answer))
        assert refused.value.is_definite is is_sure


def test_sentinels_lead_to_the_master_and_without_them_the_master_leads_to_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doors = dict.fromkeys((*SERVERS, *SENTINELS), HERE)
    assert (guides(DOORS), guides(doors)) == ((MASTER,), SENTINELS)
    assert asyncio.run(master_by(MASTER, DOORS, 1)) == MASTER
    for named, found in (([b"n3", b"6379"], "n3"), (None, None), ([b"n9", b"6379"], None)):
        monkeypatch.setattr("clusters.redis.masters.Line", lambda *_, named=named, **__: Server(SENTINEL=named))
        if found:
            assert asyncio.run(master_by(SENTINELS[0], doors, 1)) == found
        else:
            with pytest.raises(Broken, match="names"):
                asyncio.run(master_by(SENTINELS[0], doors, 1))


def test_the_ack_floor_is_below_the_first_pending_entry_or_else_the_last_that_was_delivered() -> None:
    groups = [[b"name", b"s2", b"last-delivered-id", b"9-0"], [b"name", b"s1", b"last-delivered-id", b"5-3"]]

    def floor(*pending: Json | bytes) -> int:
        subscriber = RedisSubscriber(NodeId("s1"), DOORS, ALWAYS, {})
        return asyncio.run(subscriber._ack_floor(Server(EXEC=[groups, list(pending)])))

    assert floor(0, None, None, None) == rows.position_of(b"5-3")
    assert floor(2, b"5-0", b"5-3", []) == rows.position_of(b"5-0") - 1


@pytest.mark.parametrize("bug", [None, planted.EARLY_ACK])
def test_a_session_begins_with_pending_entries_and_acknowledges_what_it_has_delivered(bug: str | None) -> None:
    write = rows.entry((MicroOp("append", 1, 7),))
    log: list[str] = []

    class Group(Server):
        async def run(self, *commands: Command, within_s: float | None = None) -> list[Any]:
            match commands[0]:
                case ("XREADGROUP", *_, behind):
                    identity = {b"0": b"1-0", b"1-0": None, b">": b"2-0"}[behind]  # type: ignore[index]  # A command's.
                    log.append(f"read {behind!r}")
                    if log.count("read b'>'") == 3:
                        raise Broken("enough")
                    return [[[rows.STREAM, [[identity, [rows.FIELD, write]]]]] if identity else None]
                case ("XACK", *_, identity):
                    log.append(f"ack {identity!r}")
                    return [1]
            state = [b"name", b"s1", b"last-delivered-id", b"0-0"]
            return [b"OK", b"QUEUED", b"QUEUED", [[state], [0, None, None, None]]]

    class Subscriber(RedisSubscriber):
        def _dial(self, address: Address) -> Group:
            return Group()

    async def deliver(delivery: Delivery) -> None:
        log.append(f"{delivery.kind} {delivery.position}")

    bugs = frozenset([bug] if bug else [])
    with pytest.raises(Broken, match="enough"):
        asyncio.run(Subscriber(NodeId("s1"), DOORS, Settings(options=OPTIONS, bugs=bugs), {}).receive(deliver))
    assert log[:2] == ["open None", "read b'0'"]
    first, ack = log.index(f"row {1 << 20}"), log.index("ack b'1-0'")
    assert (ack < first) is (bug is not None)
    assert log.count("read b'1-0'") == 1
