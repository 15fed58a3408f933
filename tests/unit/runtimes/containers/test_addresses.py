"""Networks whose addresses are chosen: the range is one that the engine found free, and is chosen again if taken."""

from typing import Any, ClassVar

import pytest
from docker.errors import APIError

from harness.core.machine import NodeId
from harness.runtimes.containers.engine.addresses import addresses, fixed


class Engine:
    """Networks in memory; the first `taken` chosen ranges overlap with those of another run."""

    def __init__(self, taken: int = 0, error: str = "Pool overlaps with other one on this address space") -> None:
        self.taken, self.error, self.made = taken, error, 0
        self.networks: list[Any] = []

    def create(self, ipam: Any) -> Any:
        if ipam is not None and self.taken:
            self.taken -= 1
            raise APIError(self.error)
        self.made += 1
        engine, chosen = self, f"172.20.{self.made}.0/24" if ipam is None else ipam["Config"][0]["Subnet"]

        class Network:
            attrs: ClassVar[Any] = {"IPAM": {"Config": [{"Subnet": chosen}]}}

            def reload(self) -> None: ...

            def remove(self) -> None:
                engine.networks.remove(self)

        self.networks.append(Network())
        return self.networks[-1]


@pytest.mark.parametrize("taken", [0, 1, 9])
def test_a_range_that_another_run_takes_in_between_is_given_up_for_a_new_one(taken: int) -> None:
    engine = Engine(taken)
    network = fixed(engine.create)
    assert engine.networks == [network]
    assert network.attrs["IPAM"]["Config"][0]["Subnet"] == f"172.20.{taken + 1}.0/24"


@pytest.mark.parametrize("engine", [Engine(10), Engine(1, "no such driver")], ids=["always taken", "another error"])
def test_an_engine_that_refuses_leaves_no_network(engine: Engine) -> None:
    with pytest.raises(APIError):
        fixed(engine.create)
    assert engine.networks == []


def test_nodes_have_the_last_addresses_of_the_range_but_for_the_broadcast() -> None:
    nodes = [NodeId("n1"), NodeId("n2")]
    assert addresses(fixed(Engine().create), nodes) == {"n1": "172.20.1.254", "n2": "172.20.1.253"}
