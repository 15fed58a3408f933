"""Servers that share one address for each member reach each other by name, without a door; faults strike there too.

The two servers of a user's own file get power failures, late requests, cut links and bad packets without a line for
these.
"""

from pathlib import Path

import msgspec
import pytest
from pyarrow import parquet

from harness.cli.new import template
from harness.core.record import BUSY, Json
from harness.runtimes.containers.disks.loop import obstacle
from tests.system.harnesses import seamark

pytestmark = pytest.mark.docker

FOLLOWS = """

async def prepare(doors: Doors, settings: Settings) -> None:
    client = Client(0, doors, settings)
    client.streams = await asyncio.open_connection(*doors[NODE])
    await client.answers(["SET ready 1"])
    [followers] = await client.answers(["WAIT 1 20000"])  # Until n2 has it, which found n1 by its name.
    await client.close()
    if followers != ":1":
        raise OSError(f"n2 does not follow: {followers}")
"""
# Each with its arguments, and its begin and end in milliseconds.
PACKETS = (
    ("delay", {"latency_ns": 10**8, "jitter_ns": 10**7}, 200, 600),
    ("reorder", {"permille": 300}, 650, 1000),
    ("duplicate", {"permille": 300}, 1050, 1400),
    ("bandwidth", {"bytes_per_s": 9_000}, 1450, 1800),
    ("drop", {"permille": 300}, 1850, 2200),
)


def test_a_follower_finds_its_leader_by_name_and_both_lose_power_and_are_cut_off_from_each_other(
    tmp_path: Path,
) -> None:
    text = (
        template("pair")
        .replace("\n\n# 4.", f"{FOLLOWS}\n\n# 4.")
        .replace('"--dir", "/data", *SYNCED)', '"--dir", "/data", *SYNCED, *LEADER.get(node, ()))')
        .replace("NODE = ", 'LEADER = {NodeId("n2"): ("--replicaof", "n1", "6379")}\nNODE = ')
        .replace(
            "service=service",
            "service=service, prepare=prepare, "
            'nodes=(Node(NODE, "member"), Node(NodeId("n2"), "member")), dials=(("client", "member"),)',
        )
        .replace("import Completion, ", "import Completion, Node, ")
    )
    (tmp_path / "pair.py").write_text(text, encoding="utf-8")
    run = ("run", "--cluster", "pair.py:pair", "--runtime", "docker", "--time", "8", "--rate", "100", "--seed", "3")
    cut = {"fault": "cut", "package": "partition", "at_ns": 23 * 10**8, "until_ns": 32 * 10**8, "targets": ["n1>n2"]}
    stall = cut | {"fault": "stall", "at_ns": 4 * 10**9, "until_ns": 6 * 10**9, "targets": ["n2>n1", "n1>n2"]}
    late = cut | {"fault": "late", "package": "late", "at_ns": 22 * 10**8, "until_ns": 39 * 10**8}
    late |= {"targets": ["client>n1"], "args": {"delay_ns": 12 * 10**8}}
    power = cut | {"fault": "crash", "package": "power", "at_ns": 64 * 10**8, "until_ns": 70 * 10**8}
    power |= {"targets": ["n1", "n2"], "args": {"disk": "lost"}}
    packets = [
        cut | {"package": "packets", "fault": fault, "args": args, "at_ns": at * 10**6, "until_ns": until * 10**6}
        for fault, args, at, until in PACKETS
    ]
    steps = [*packets, cut, late, stall, *([] if obstacle() else [power])]
    (tmp_path / "cut.json").write_bytes(msgspec.json.encode({"steps": steps}))
    code, out, err = seamark(tmp_path, *run, "--plan", "cut.json", "--engine", "local", "--json")
    report = msgspec.json.decode(out, type=dict[str, Json])
    assert code == 0, err + out[:2_000]
    assert report["findings"] == []
    [folder] = (tmp_path / "store" / "pair").iterdir()
    rows = parquet.read_table(folder / "history" / "faults.parquet").to_pylist()
    effects = [row for row in rows if row["phase"] == "effect" and row["kind"] != BUSY]
    assert len(effects) == len(steps)
    told = {
        "late": "after their clients had hung up",
        "power": "n2: the unsynced file is gone, the synced one is there",
    }
    for row in effects:
        assert row["effect"] > (row["kind"] == "power"), row["note"]  # Both servers.
        assert told.get(row["kind"], "packets between members") in row["note"]
    (tmp_path / "reset.json").write_bytes(msgspec.json.encode({"steps": [cut | {"fault": "reset"}]}))
    code, _, err = seamark(tmp_path, *run, "--plan", "reset.json")
    assert code == 64
    assert "'n1>n2' is a direct link: no proxy is in between; cut, stall or delay it" in err
