from pathlib import Path

import pytest

from harness.core.errors import HistoryError
from harness.core.record import Complete, Fault, Invoke
from harness.record.formats.edn.jepsen_log import read_jepsen_log
from harness.record.formats.load import load

LOG = """\
2014-05-27 23:12:12 INFO  jepsen.core - Worker 3 starting
INFO  jepsen.util - 3\t:invoke\t:cas\t[0 1]
INFO  jepsen.util - 1   :invoke :read   nil
INFO  jepsen.util - :nemesis\t:info\t:start\t"Cut off"
INFO  jepsen.util - 1   :fail   :read   :timed-out
INFO  jepsen.util - 3\t:info\t:cas\t:timed-out
2018-05-27 [jepsen worker 2] INFO jepsen.util 2\t:invoke\t:write\t7
2018-05-27 [jepsen worker 2] INFO jepsen.util 2\t:fail\t:write\t7\t[:refused "by n1"]
"""


def log(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "jepsen.log"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_operations_in_a_log_are_read_and_other_lines_left_out(tmp_path: Path) -> None:
    assert list(read_jepsen_log(log(tmp_path, LOG))) == [
        Invoke(0, 0, 0, 3, "cas", [0, 1]),
        Invoke(1, 1, 1, 1, "read"),
        Fault(2, 0, "effect", "start", (), note='"Cut off"'),
        Complete(1, 3, "fail", error=":timed-out"),
        Complete(0, 4, "info", [0, 1], error=":timed-out"),
        Invoke(2, 5, 5, 2, "write", 7),
        Complete(2, 6, "fail", 7, error='[":refused","by n1"]'),
    ]


def test_a_log_is_known_by_its_lines_whatever_it_is_called(tmp_path: Path) -> None:
    loaded = load(log(tmp_path, LOG), tmp_path / "work")
    assert (loaded.format, loaded.is_foreign) == ("Jepsen log", True)
    assert loaded.notes == ("1 nemesis operations skipped",)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("INFO  jepsen.util - 3\t:ok\t:read", "after jepsen.util come process, type, f and value"),
        ("INFO  jepsen.util - 3\t:ok\t:read\t[1", "the file ends inside of"),
        ("INFO  jepsen.util - 3\t:ok\t:read\t1 2", "there are 2 forms"),
        ("INFO  jepsen.util - 3\t:maybe\t:read\t1", "its type must be one of"),
        ("INFO  jepsen.util - 3\t:ok\t:read\t1", "process 3 completes, but has no open invocation"),
        ("INFO  jepsen.util - " + "9" * 30 + "\t:invoke\t:read\tnil", "its process is not an integer from 0"),
        ("INFO  jepsen.util - 3\t:invoke\t:write\t" + "1" * (1 << 20), "it is longer than 1 MiB"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(tmp_path: Path, line: str, problem: str) -> None:
    before = "INFO  jepsen.util - 3\t:invoke\t:write\t1\nINFO  jepsen.util - 3\t:ok\t:write\t1\n"
    with pytest.raises(HistoryError, match=rf"jepsen.log, line 3: {problem}"):
        list(read_jepsen_log(log(tmp_path, before + line + "\n")))


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jepsen.log"
    path.write_bytes(b"INFO  jepsen.util - 3\t:invoke\t:write\t\xff\n")
    with pytest.raises(HistoryError, match="line 1: "):
        list(read_jepsen_log(path))
