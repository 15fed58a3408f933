"""What ships to Spark's workers. The engine itself is tested in tests/property/test_engines.py."""

from pathlib import Path
from zipfile import ZipFile

import checkers
from checkers.engine.spark import packed


def test_the_package_holds_the_kernels_and_the_core_and_is_named_by_them(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first, again = packed(tmp_path), packed(elsewhere)
    assert first.name == again.name
    assert first.read_bytes() == again.read_bytes()
    names = set(ZipFile(first).namelist())
    assert {
        "checkers/__init__.py",
        "checkers/transactions/list_rows.py",
        "harness/core/columns.py",
        "harness/__init__.py",
    } <= names
    top = Path(checkers.__file__).parents[1]
    below = {path.relative_to(top).as_posix() for path in (top / "checkers").rglob("*.py")}
    assert {name for name in names if name.startswith("checkers/")} == below
    elsewhere_in = {name.rsplit("/", 1)[0] for name in names - below}
    assert elsewhere_in == {"harness", "harness/core", "harness/core/generators", "seamark"}
