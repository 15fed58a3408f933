import time
from collections.abc import Callable, Sequence
from typing import cast

import docker
import pytest
from docker.errors import APIError
from msgspec.structs import replace
from requests import Response

from harness.core.errors import DeployError
from harness.record.ownership import Fate, Owner, this_process
from harness.runtimes.containers.engine import sweeper
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.engine.sweeper import remove_run, sweep

ELSEWHERE = replace(this_process(), host="another/1")
DEAD = replace(this_process(), start=1)


class FakeApi:
    """An engine's lists, and what it answers to a removal."""

    def __init__(self, *owners: Owner | dict[str, str] | None, statuses: Sequence[int] = ()) -> None:
        self.rows = [
            {
                "Id": f"i{n}",
                "Names": [f"/c{n}"],
                "Labels": labels_for("r1", owner) if isinstance(owner, Owner) else owner,
            }
            for n, owner in enumerate(owners)
        ]
        self.statuses = list(statuses)  # Of the first removals, which are refused.
        self.removed: list[str] = []

    def containers(self, **_: object) -> list[dict[str, object]]:
        return list(self.rows)  # type: ignore[arg-type]  # Rows of an engine are read by key.

    def networks(self, **_: object) -> list[dict[str, object]]:
        return []

    def volumes(self, **_: object) -> dict[str, None]:
        return {"Volumes": None}  # As an engine without volumes says it.

    def remove_container(self, name: str, **_: object) -> None:
        if self.statuses:
            response = Response()
            response.status_code = self.statuses.pop(0)
            raise APIError("refused", response=response)
        self.removed.append(name)


def client(api: FakeApi) -> docker.DockerClient:
    return cast("docker.DockerClient", type("Client", (), {"api": api})())


@pytest.mark.parametrize(("everything", "removed"), [(False, ["i1"]), (True, ["i1", "i2"])])
def test_of_other_machines_things_are_removed_only_when_everything_is_asked_for(
    everything: bool, removed: list[str]
) -> None:
    api = FakeApi(this_process(), DEAD, ELSEWHERE, {"com.example": "1"}, None)
    assert DEAD.fate() is Fate.GONE
    swept = sweep(client(api), everything=everything)
    assert api.removed == removed
    assert [each.name for each in swept] == [f"c{name[1:]}" for name in removed]


def test_what_is_gone_already_is_passed_over() -> None:
    api = FakeApi(DEAD, statuses=[404])
    assert sweep(client(api)) == ()
    assert api.removed == []


@pytest.mark.parametrize("status", [403, 409])
def test_what_another_is_removing_is_waited_for(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    assert [each.name for each in sweep(client(FakeApi(DEAD, statuses=[status, status])))] == ["c0"]
    assert pauses == [sweeper.PAUSE_S] * 2


def test_what_stays_busy_is_left_alone_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    api = FakeApi(DEAD, statuses=[409] * sweeper.LOOKS)
    assert sweep(client(api)) == ()
    assert (api.statuses, api.removed) == ([], [])


SWEEPS: list[Callable[[docker.DockerClient], object]] = [sweep, lambda engine: remove_run(engine, "r1")]


@pytest.mark.parametrize("sweeping", SWEEPS)
def test_an_engine_that_fails_is_an_error_of_ours(sweeping: Callable[[docker.DockerClient], object]) -> None:
    with pytest.raises(DeployError, match="could not be removed"):
        sweeping(client(FakeApi(DEAD, statuses=[500])))


def test_a_run_s_things_go_whoever_owns_them_and_those_of_other_runs_stay() -> None:
    api = FakeApi(this_process(), ELSEWHERE, labels_for("r2"))
    assert [each.name for each in remove_run(client(api), "r1")] == ["c0", "c1"]
