"""What ships to Spark's workers. The engine itself is tested in tests/property/test_engines.py."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import checkers
import harness.record
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
    assert elsewhere_in == {"harness", "harness/core", "harness/core/generators"}


def test_what_reads_files_for_the_kernels_can_be_used_from_the_package_alone(tmp_path: Path) -> None:
    package = packed(tmp_path, also=(harness.record,))
    text = f"import sys; sys.path.insert(0, {str(package)!r}); import harness.record.formats.edn.part as m"
    text += "; print(m.__file__)"
    shown = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout.startswith(str(package))
