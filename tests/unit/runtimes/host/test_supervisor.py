"""The first process: starts one life after the other, and ends when it is told to."""

import resource
import signal
from pathlib import Path

import pytest

from harness.runtimes.host.control import Ready
from tests.unit.runtimes.host.nodes import ANSWER, Nodes, run, step, until


def test_a_process_that_exits_has_its_files_but_not_its_memory(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        (control,) = await nodes.ready("a")
        client = await nodes.client("a")
        await client.do(step("append", "log", 1), step("send", "a", 5), ANSWER)
        await client.sees("received a 5")
        client.begin(step("append", "log", 2), step("exit", "", 30_000_000), step("append", "log", 3))
        await until(lambda: control.has_ended)
        assert (await (await nodes.returned("a")).first(Ready)).life == 2
        seen = await (await nodes.client("a")).seen()
        assert seen.logs["log"] == [1, 2]
        assert seen.events == []

    run(tmp_path, scenario, ["a"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_supervisor_and_node(tmp_path: Path, number: signal.Signals) -> None:
    async def scenario(nodes: Nodes) -> None:
        process = nodes.start("a")
        control = await nodes.control("a")
        await control.first(Ready)
        process.send_signal(number)
        await until(lambda: process.poll() is not None and control.has_ended)
        assert process.returncode == 128 + number

    run(tmp_path, scenario, ["a"])


def test_a_full_disk_ends_the_process_and_it_is_started_again(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        process = nodes.start("a")
        control = await nodes.control("a")
        await control.first(Ready)
        client = await nodes.client("a")
        await client.do(step("append", "log", 1), step("sync", "", 1))
        child = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        size = (tmp_path / "a" / "state.log").stat().st_size
        resource.prlimit(child, resource.RLIMIT_FSIZE, (size + 4, resource.RLIM_INFINITY))
        client.begin(step("append", "log", 2), ANSWER)
        await until(lambda: control.has_ended)
        await nodes.returned("a")
        assert (await (await nodes.client("a")).seen()).logs["log"] == [1]
        log = nodes.kill("a")
        assert "node a: the disk: " in log
        assert "the node's process ended with exit code 74" in log

    run(tmp_path, scenario, ["a"])


def test_a_configuration_that_is_none_is_one_line(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        nodes.epoch_ns = "soon"  # type: ignore[assignment]  # What a wrong harness would send.
        process = nodes.start("a")
        await until(lambda: process.poll() is not None)
        assert process.returncode == 1
        assert "SEAMARK_NODE is no configuration of a node: Expected `int`, got `str` - at `$.epoch_ns`" in nodes.kill(
            "a"
        )

    run(tmp_path, scenario, ["a"])
