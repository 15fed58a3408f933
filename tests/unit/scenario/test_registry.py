"""Where clusters come from: installed names, and files of one's own, each refusal in a line that says what to do."""

from pathlib import Path

import pytest

from harness.core.errors import ScenarioError
from harness.core.seams import is_of_machines, is_of_services
from harness.scenario.consent import cluster_names, installed, on_command_line, place_of
from harness.scenario.registry import code_sha256_of, load_cluster, load_machines, module_of

SYSTEM = """
from harness.core.seams import Service
from harness.core.system import System

def make():
    return System(name="box", service=lambda *_: Service(port=1, hello=b"", folder="/data"), client=lambda *_: None)

box = make()
Box = make
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "box.py"
    path.write_text(SYSTEM, encoding="utf-8")
    return path


def refusal(name: str, code_sha256: str | None = None) -> str:
    with pytest.raises(ScenarioError) as refused:
        load_cluster(on_command_line(name), code_sha256)
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_every_installed_cluster_has_all_that_is_asked_of_one() -> None:
    assert {"ndb", "tutorial"} <= set(cluster_names())
    for name in cluster_names():
        code = installed(name)
        cluster = load_cluster(code)
        assert is_of_machines(cluster) != is_of_services(cluster)
        assert (code.name, code.place, code_sha256_of(code), place_of(name)) == (name, None, None, None)
        assert on_command_line(name) == code


@pytest.mark.parametrize("name", ["box", "Box", "make"])
def test_an_instance_and_what_makes_one_are_both_a_cluster(file: Path, name: str) -> None:
    cluster = load_cluster(on_command_line(f"{file}:{name}"))
    assert (cluster.name, is_of_services(cluster)) == ("box", True)


def test_a_class_is_called_too_and_its_annotations_can_be_looked_up(file: Path) -> None:
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass, KW_ONLY\nimport msgspec\n"
        "class Sent(msgspec.Struct, tag=True):\n    other: Sent | None = None\n"
        "assert msgspec.json.decode(msgspec.json.encode(Sent(Sent())), type=Sent) == Sent(Sent())\n"
        "@dataclass\nclass Pair:\n    _: KW_ONLY\n    first: int = 0\n"
        "from clusters.tutorial import Cluster\nclass Mine(Cluster):\n    name = 'mine'\n",
        encoding="utf-8",
    )
    assert load_machines(on_command_line(f"{file}:Mine")).name == "mine"
    assert load_machines(on_command_line(f"{file}:Cluster")).name == "tutorial"


def test_a_file_named_as_a_library_leaves_the_library_alone_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "json.py"
    path.write_text(f"import json\nassert json.dumps([1]) == '[1]'\n{SYSTEM}", encoding="utf-8")
    assert load_cluster(on_command_line(f"{path}:Box")).name == "box"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_is_settled_so_that_it_is_found_from_every_folder(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    settled = on_command_line("box.py:Box").name
    assert settled == f"{file.resolve()}:Box"
    monkeypatch.chdir("/")
    assert load_cluster(on_command_line(settled)).name == "box"


def test_a_file_that_changed_is_refused_only_where_the_former_one_is_asked_for(file: Path) -> None:
    name = f"{file}:Box"
    before = code_sha256_of(on_command_line(name))
    assert load_cluster(on_command_line(name), before).name == "box"
    file.write_text(SYSTEM + "# changed\n", encoding="utf-8")
    assert f"{file}: has changed since that run" in refusal(name, before)
    assert load_cluster(on_command_line(name)).name == "box"


def test_a_file_that_has_gone_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path / 'box.py'}: the file with the cluster cannot be read" in refusal(f"{tmp_path / 'box.py'}:Box")


def test_a_name_that_the_file_does_not_have_is_refused_with_the_nearest_or_with_all(file: Path) -> None:
    assert "did you mean 'Box'" in refusal(f"{file}:Bax")
    assert "it has make, box, Box" in refusal(f"{file}:nothing_like_it")


def test_a_file_without_a_name_is_refused_with_its_names(file: Path) -> None:
    assert f"{file}:Box" in refusal(str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nimport nothing_of_that_name\n", "box.py:2: it cannot be loaded: ModuleNotFoundError: No module named"),
        ("x = 1\n\ndef Box(:\n", "box.py:3: it cannot be loaded: SyntaxError: "),
        (
            "def half(n):\n    return n / 0\ndef Box():\n    return half(1)\n",
            "box.py:2: Box() cannot be loaded: ZeroDiv",
        ),
        ("def Box(one):\n    return one\n", "Box() cannot be loaded: TypeError: Box() missing 1 required"),
        ("raise SystemExit('no')\n", "box.py:1: it cannot be loaded: SystemExit: no"),
        ("Box = 7\n", "box.py:Box is not a cluster, it lacks: name, summary, nodes"),
        (
            "class Box:\n    name = 'box'\n    def machine(self, node): ...\n",
            "it lacks: summary, nodes, links, promises",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(file: Path, text: str, message: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert message in refusal(f"{file}:Box")


def test_a_file_that_imports_the_one_beside_it_is_told_what_to_do(file: Path) -> None:
    (file.parent / "words.py").touch()
    file.write_text("import words\n", encoding="utf-8")
    assert "a file cannot import another file of its folder: install both" in refusal(f"{file}:Box")


def test_a_file_that_reads_its_own_place_is_told_what_to_do(file: Path) -> None:
    file.write_text("from pathlib import Path\nTEXT = Path(__file__).read_text()\n", encoding="utf-8")
    assert ":2: it cannot be loaded: NameError" in refusal(f"{file}:Box")
    assert "a system is its file's content alone: put the text into it" in refusal(f"{file}:Box")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ('name="a box"', "its name 'a box' must be of letters"),
        ('faults=("crush",)', "unknown name for faults 'crush'; did you mean crash?"),
        ('faults="crash"', "faults must be a tuple, as in ('crash',)"),
        ('workloads=("list-apend",)', "unknown name for workloads 'list-apend'; did you mean list-append?"),
        ("workloads=()", "at least one node and one workload"),
        ('nodes=(Node("n1", "server"), Node("n1", "server"))', "two of its nodes have the same name"),
        ('dials=(("client", "sever"),)', "dials names 'sever', which is the role of none of its nodes: server"),
        (
            'nodes=(Node("n1", "server"), Node("n2", "copy")), dials=(("client", "server"),)',
            "no role dials n2, so it cannot be seen to be ready: add ('client', 'copy') to dials",
        ),
        ('promises=(Promise(id="B-1", text="", source="", forbids=("lost-updates",)),)', "did you mean lost-update?"),
    ],
)
def test_what_would_fail_later_is_refused_when_it_is_loaded(file: Path, argument: str, message: str) -> None:
    given = 'name="box", ' if not argument.startswith("name=") else ""
    file.write_text(
        "from harness.core.promises import Promise\nfrom harness.core.seams import Node\n"
        + SYSTEM.replace('name="box", ', f"{given}{argument}, "),
        encoding="utf-8",
    )
    assert message in refusal(f"{file}:Box")


def test_servers_of_others_cannot_be_simulated_and_machines_in_a_file_not_be_put_into_an_image(file: Path) -> None:
    with pytest.raises(ScenarioError, match="made of real servers, which cannot be simulated: use --runtime docker"):
        load_machines(on_command_line(f"{file}:Box"))
    with pytest.raises(ScenarioError, match="not in a node's image"):
        module_of(on_command_line(f"{file}:Box"))
    assert module_of(installed("tutorial")) == "clusters.tutorial:Cluster"
