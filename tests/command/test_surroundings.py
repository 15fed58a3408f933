"""Where a command runs: odd names, little memory, a signal. Each ends in one clear line and leaves nothing behind."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command.conftest import SMALL, Seamark

START = "from harness.cli.entry import main; main()"
KINDS = ("invoke", "ok")
RUN = ("run", "--seed", "7", *SMALL, "--quiet")


def test_an_interrupt_while_modules_load_is_one_line(tmp_path: Path) -> None:
    """They take a second to load, in which a person sees that a command was the wrong one."""
    command = [sys.executable, "-P", "-c", INTERRUPTED + START, *RUN]
    loading = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert line_of(loading) == (130, "seamark: interrupted")


def test_no_run_loads_pandas_or_docker(tmp_path: Path) -> None:
    """A run writes, reads, judges and reports; pyarrow would load pandas on the way."""
    loaded = loaded_by(*RUN, cwd=tmp_path)
    assert "pyarrow.lib" in loaded
    assert not {"pandas.core", "docker.api"} & loaded  # What pyarrow looks for in vain is listed, too.


def test_a_check_loads_nothing_that_only_other_commands_need(tmp_path: Path) -> None:
    history = tmp_path / "history.edn"
    ops = "[[:append 1 2]]", "[[:r 1 [2]]]"
    history.write_text("".join(f"{{:type :{kind} :process 0 :f :txn :value {op}}}\n" for op in ops for kind in KINDS))
    loaded = loaded_by("check", history, "--quiet", cwd=tmp_path)
    assert {"harness.judging.judge", "checkers.catalogue"} <= loaded
    assert not {"docker.api", "pydantic.main", "scipy", "jinja2", "asyncio", "harness.hunt.document"} & loaded


def test_help_loads_no_command(tmp_path: Path) -> None:
    loaded = loaded_by("--help", cwd=tmp_path)
    assert "typer.main" in loaded
    assert not {"numpy", "pyarrow.lib", "harness.cli.output"} & loaded


def test_memory_is_collected_again_once_a_command_is_loaded() -> None:
    code = "import gc; from harness.cli.entry import _loaded; _loaded(['list']); assert gc.isenabled()"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def loaded_by(*arguments: str | Path, cwd: Path) -> set[str]:
    """The modules that `seamark ARGUMENTS` loads, and those that it looks for in vain."""
    command = [sys.executable, "-P", "-X", "importtime", "-c", START, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def started(*arguments: str | bytes, cwd: Path, **environment: str) -> subprocess.Popen[bytes]:
    """`seamark ARGUMENTS` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", START, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


INTERRUPTED = """
import sys


class Interrupt:
    def find_spec(self, name, *_):
        if name == "harness.cli.main":
            raise KeyboardInterrupt


sys.meta_path.insert(0, Interrupt())
"""

ON_SIGTERM = "seamark: SIGTERM: stopping, and removing what was started"


def line_of(done: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The exit code, and standard error: one line of ours besides what is kept and the SIGTERM."""
    out, err = done.communicate()
    lines = [line for line in err.decode().splitlines() if line != ON_SIGTERM and not line.startswith("  ")]
    assert (out, len(lines)) == (b"", 1), (out, err)
    assert lines[0].startswith("seamark: ")
    return done.returncode, lines[0]


def test_a_store_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    code, line = line_of(started(*RUN, "--store", b"a\xff", cwd=tmp_path))
    assert (code, "b'a\\xff' is no text in UTF-8: use another name" in line) == (64, True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_the_locale_cannot_name_is_refused_with_the_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "ü"
    folder.mkdir()
    ascii_only = {"PYTHONUTF8": "0", "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"}
    code, line = line_of(started(*RUN, cwd=folder, **ascii_only))
    assert (code, "unset PYTHONUTF8, or set LC_ALL=C.UTF-8" in line) == (64, True)
    assert list(folder.iterdir()) == []
    assert line_of(started("check", "nowhere.edn", cwd=folder))[0] == 64  # It is the locale alone.


@pytest.mark.parametrize("mebibytes", [150, 360, 1500])
def test_too_little_address_space_is_told_before_anything_else(tmp_path: Path, mebibytes: int) -> None:
    code = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({mebibytes << 20},) * 2); {START}"
    done = subprocess.run([sys.executable, "-P", "-c", code, *RUN], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.decode().startswith(f"seamark: ulimit -v is {mebibytes} MiB, and Seamark needs 2048")
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != mebibytes << 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [(), ("--count", "4", "--jobs", "2")])
def test_sigterm_ends_a_run_with_143_and_keeps_what_was_recorded(
    seamark: Seamark, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    options = ("run", "--seed", "7", "--cluster", "ndb", "--time", "600", "--engine", "local", "--quiet", *arguments)
    command = started(*options, cwd=tmp_path, TMPDIR=str(temporary))
    while not list(tmp_path.glob("store/ndb/*/journal.log")):
        assert command.poll() is None
        time.sleep(0.05)
    command.send_signal(signal.SIGTERM)
    code, line = line_of(command)
    assert (code, line) == (143, "seamark: terminated")
    assert list(temporary.iterdir()) == []
    runs = list(tmp_path.glob("store/ndb/*"))
    assert all("seamark" not in path.name for run in runs for path in run.iterdir())
    assert seamark("check", runs[0], "--engine", "local", "--quiet").code in (1, 3)


@pytest.mark.parametrize("seed", range(4))
def test_a_client_that_cannot_wait_is_no_finding(seamark: Seamark, seed: int) -> None:
    outcome = seamark("run", "--seed", seed, *SMALL, "--timeout-ms", "1", "--json")
    assert (outcome.code in {0, 3}, outcome.json["findings"]) == (True, [])


def test_a_run_in_a_store_that_takes_nothing_is_judged(
    seamark: Seamark, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("harness.run.single.write_atomically", refuse)
    monkeypatch.setattr(os, "access", lambda _, mode, **__: mode != os.W_OK)
    outcome = seamark("check", run_copy, "--engine", "local", "--quiet")
    assert (outcome.code, outcome.line) == (
        0,
        f"seamark: {run_copy}: the report could not be stored (Read-only file system)",
    )
    assert outcome.out.startswith("PASS")
    assert seamark("check", run_copy, "--engine", "local", "--html", "page.html").code == 4
    again = seamark("replay", run_copy, "--engine", "local")
    assert (again.code, "takes no files" in again.line) == (64, True)
