"""scripts/imports: our own rooms, and rooms with something wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = """
[[tool.importlinter.contracts]]
type = "layers"
containers = ["house"]
layers = ["roof", "hall | study", "cellar"]
ignore_imports = ["house.cellar.wine -> house.study.desk"]
"""


def drawn(package: str, root: Path) -> tuple[int, str]:
    """The exit code, and what the command prints."""
    command = [sys.executable, str(ROOT / "scripts" / "imports"), package, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def house(folder: Path, floors: str = FLOORS, **rooms: str) -> tuple[int, str]:
    """The same of a package with a file in each room."""
    sound = {"roof_tile": "import house.hall.door", "hall_door": "", "study_desk": "", "cellar_wine": ""}
    for name, text in (sound | rooms).items():
        room, file = name.split("_")
        (folder / "house" / room).mkdir(parents=True, exist_ok=True)
        (folder / "house" / room / f"{file}.py").write_text(text)
    (folder / "pyproject.toml").write_text(floors)
    return drawn("house", folder)


@pytest.mark.parametrize("package", ["checkers", "harness"])
def test_between_our_rooms_no_arrow_points_upwards_and_there_is_no_cycle(package: str) -> None:
    code, result = drawn(package, ROOT)
    assert result.splitlines()[-1] == "no arrow upwards, no cycle"
    assert code == 0


def test_a_sound_house_is_drawn_from_the_top(tmp_path: Path) -> None:
    code, result = house(tmp_path, cellar_wine="from house.study.desk import drawer")
    assert code == 0
    assert result.splitlines() == [
        "house: 4 rooms on 3 floors, 1 arrows of 1 imports",
        "3  roof -> hall 1",
        "2  hall",
        "2  study",
        "1  cellar",
        "listed: house.cellar.wine -> house.study.desk",
        "no arrow upwards, no cycle",
    ]


@pytest.mark.parametrize("line", ["from house.study import desk", "def late():\n    import house.study.desk as desk"])
def test_an_arrow_to_the_same_floor_or_above_is_found(tmp_path: Path, line: str) -> None:
    code, result = house(tmp_path, hall_door=line)
    assert code == 1
    assert result.splitlines()[-1] == "upwards: house.hall.door -> house.study.desk"


def test_without_declared_floors_a_cycle_is_found(tmp_path: Path) -> None:
    code, result = house(tmp_path, floors="", hall_door="import house.roof.tile")
    assert code == 1
    assert result.splitlines()[-1] in ("cycle: roof -> hall -> roof", "cycle: hall -> roof -> hall")
