"""A campaign goes on in its own store, and only with what the command line confirms."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.campaign.evidence import KIND
from harness.campaign.ledger.design import Order
from harness.campaign.ledger.orders import ORDER_FILE, read_order, store_of
from harness.campaign.sweep import begin, resumed
from harness.core.errors import HistoryError, ScenarioError
from tests.unit.campaign.made import config


def test_the_folder_itself_as_the_working_folder_is_in_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = begin(config(), tmp_path / "store")
    monkeypatch.chdir(order.folder)
    assert resumed(Path(), Path("store")).store == tmp_path / "store"
    monkeypatch.chdir(tmp_path)
    assert resumed(order.folder.relative_to(tmp_path), Path("elsewhere")).store == Path("store")
    assert resumed(order.folder, Path("elsewhere")).store == tmp_path / "store"
    assert resumed(Path("latest"), Path("store")).store == Path("store")


def test_a_copy_outside_of_a_store_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = begin(config(), tmp_path / "store")
    copy = Path(shutil.copytree(order.folder, tmp_path / "copy"))
    with pytest.raises(ScenarioError, match="is in no store: a sweep goes on in STORE/sweeps/NAME/FOLDER"):
        resumed(copy, tmp_path / "store")
    with pytest.raises(ScenarioError, match="is in no store"):
        store_of(Path("/"), KIND)


def test_a_folder_whose_config_names_containers_starts_none_unless_the_command_line_says_so(tmp_path: Path) -> None:
    order = begin(config(runtimes=["sim", "docker"]), tmp_path / "store")
    with pytest.raises(ScenarioError, match="some of its runs start containers: if that may be, add --runtime docker"):
        resumed(order.folder, tmp_path / "store")
    assert resumed(order.folder, tmp_path / "store", may_start_containers=True).order == order.order
    assert order.resumption.endswith(" --runtime docker")


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "$.design.cells": lambda order: order["design"].update(cells=[]),
    "$.design.cells[0].count": lambda order: order["design"]["cells"][0].update(count=0),
    "runs are planned, and it needs": lambda order: order["design"].update(min_runs=51),
    "$.design.min_runs": lambda order: order["design"].update(min_runs=-1),
    "$.design.cells[0].scenario.clients": lambda order: order["design"]["cells"][0]["scenario"].update(clients="many"),
    "clients is 0: it must be from 1": lambda order: order["design"]["cells"][0]["scenario"].update(clients=0),
    "$.design.seed": lambda order: order["design"].update(seed=1 << 64),
    "$.design.sha256": lambda order: order["design"].update(sha256="c0"),
    "has schema 3, this Seamark reads 2": lambda order: order.update(schema=3),
    "`code`": lambda order: order.pop("code"),
}


@pytest.mark.parametrize("problem", WRONG)
def test_an_order_out_of_bounds_is_told_by_its_field(tmp_path: Path, problem: str) -> None:
    path = begin(config(), tmp_path / "store").folder / ORDER_FILE
    order = msgspec.json.decode(path.read_bytes())
    WRONG[problem](order)
    path.write_bytes(msgspec.json.encode(order))
    with pytest.raises(HistoryError) as raised:
        read_order(path.parent, KIND, Order)
    assert str(raised.value).startswith(f"{path}: ")
    assert problem in str(raised.value)


@pytest.mark.parametrize("name", ["pipe", "link", "sparse"])
def test_an_order_that_is_no_plain_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    path = begin(config(), tmp_path / "store").folder / ORDER_FILE
    path.rename(tmp_path / ORDER_FILE)
    if name == "pipe":
        os.mkfifo(path)
    elif name == "link":
        path.symlink_to(tmp_path / ORDER_FILE)
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    with pytest.raises(HistoryError, match=r"is a link or no file|the limit is"):
        resumed(path.parent, tmp_path / "store")
