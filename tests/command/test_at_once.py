"""Several commands on one run or file at the same time, and what killed ones left behind."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from harness.record.formats.load import KEPT_BYTES
from harness.record.ownership import temporary_name, this_process
from tests.amount import count
from tests.command.conftest import Seamark

ROUNDS = count(2)
AT_ONCE = 3
OPERATIONS = 25_000


def command(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """A check in a process of its own."""
    start = "from harness.cli.entry import main; main()"
    words = [sys.executable, "-P", "-c", start, "check", *map(str, arguments), "--engine", "local", "--quiet"]
    return subprocess.run(words, capture_output=True, check=False)


def checked(run: Path) -> tuple[int, str, str]:
    """The exit code, the verdict and the history's hash of one check."""
    done = command(run, "--json")
    report = msgspec.json.decode(done.stdout) if done.stdout else {}
    return done.returncode, str(report.get("verdict")) + done.stderr.decode(), str(report.get("history_sha256"))


def killed(run: Path) -> Path:
    """The run as it is if it was killed before its history was written."""
    for path in (run / "history").iterdir():
        path.unlink()
    (run / "history").rmdir()
    (run / "report.json").unlink()
    return run


def test_checks_of_one_killed_run_at_the_same_time_agree(run_copy: Path) -> None:
    for _ in range(ROUNDS):
        killed(run_copy)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = set(pool.map(checked, [run_copy] * AT_ONCE))
        assert len(outcomes) == 1
        assert outcomes.pop()[:2] == (0, "valid")
        assert [path.name for path in run_copy.iterdir() if "seamark" in path.name] == []


def test_a_large_file_has_one_hash_whatever_checks_imported_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "{{:type :{}, :f :txn, :value [[:append {} {}]], :process 0, :time {}, :index {}}}\n"
    lines = (line.format(("invoke", "ok")[at % 2], at // 200, at // 2, at, at) for at in range(2 * OPERATIONS))
    path = tmp_path / "large.edn"
    path.write_text("".join(lines))
    assert path.stat().st_size > KEPT_BYTES

    def at_once(cache: str, *forms: str) -> list[subprocess.CompletedProcess[bytes]]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [*pool.map(lambda form: command(path, *form.split()), forms)]

    [first] = at_once("new", "--json")
    mixed = at_once("shared", "", "--json", "--engine auto")
    last = at_once("shared", "--json", f"--html {tmp_path / 'page.html'}")
    done = [first, *mixed, *last]
    assert {(each.returncode, each.stderr) for each in done} == {(3, b"")}  # Nothing is read, so nothing is witnessed.
    hashes = {msgspec.json.decode(each.stdout)["history_sha256"] for each in (first, mixed[1], last[0])}
    assert len(hashes) == 1
    assert str(*hashes) in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["check", "replay", "clean"])
def test_what_killed_processes_left_in_a_run_goes_with_the_next_command(
    seamark: Seamark, run_copy: Path, command: str
) -> None:
    mine, dead_start = temporary_name("history"), f"-{this_process().start - 1}-"
    left = run_copy / mine.replace(f"-{this_process().start}-", dead_start)
    left.mkdir()
    (left / "ops.parquet").write_bytes(b"half")
    (run_copy / temporary_name("file").replace(f"-{this_process().start}-", dead_start)).write_bytes(b"half")
    (run_copy / mine).mkdir()  # Of a process that lives.
    arguments = ("--store", run_copy.parent.parent) if command == "clean" else (run_copy, "--engine", "local")
    seamark(command, *arguments)
    assert [path.name for path in run_copy.iterdir() if "seamark" in path.name] == [mine]
