import sys
from pathlib import Path

import pytest

from harness.core.errors import DeployError
from harness.runtimes.containers.images.commands import Log, run


@pytest.fixture
def log(tmp_path: Path) -> Log:
    folder = tmp_path / "build"
    folder.mkdir()
    return Log("seamark-try", folder)


def test_a_command_that_fails_is_told_with_its_last_words_and_its_log(log: Log) -> None:
    (log.folder / "half").mkdir()
    (log.folder / "half" / "done").write_text("x", encoding="utf-8")
    code = "for n in range(20): print('line', n)\nraise SystemExit(3)"
    with pytest.raises(DeployError) as failed:
        run([sys.executable, "-c", code], log, missing="")
    text = str(failed.value)
    assert "seamark-try" in text
    assert "(exit 3)" in text
    assert "line 14 | line 15 | line 16 | line 17 | line 18 | line 19" in text
    assert "line 13 |" not in text
    assert str(log.path) in text
    assert [path.name for path in log.folder.iterdir()] == ["build.log"]
    assert log.path.read_text(encoding="utf-8").startswith("line 0\n")


def test_a_program_that_is_not_there_is_one_clear_line_and_leaves_nothing(log: Log) -> None:
    with pytest.raises(DeployError, match=r"^install it$"):
        run(["seamark-no-such-program"], log, missing="install it")
    assert not log.folder.exists()


def test_what_a_command_is_given_reaches_it_beside_the_environment(log: Log) -> None:
    code = "import os; raise SystemExit(0 if os.environ['SEAMARK_TRY'] == '1' and os.environ['PATH'] else 1)"
    run([sys.executable, "-c", code], log, missing="", environment={"SEAMARK_TRY": "1"})


def test_bytes_that_are_no_text_do_not_hide_a_failure(log: Log) -> None:
    with pytest.raises(DeployError, match="after"):
        run([sys.executable, "-c", r"import os; os.write(1, b'\xff\xfe\nafter\n'); os._exit(1)"], log, missing="")
