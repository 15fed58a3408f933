"""The hook that `make setup` installs: subjects are short, and the body stands apart."""

import os
import subprocess
from pathlib import Path

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "scripts" / "hooks"


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("area: short\n", ""),
        (f"area: {'x' * 66}\n\nWhy, in as many characters as it takes{', and on' * 20}.\n", ""),
        ("# a comment of git's\narea: short\n# another\n", ""),
        (f"ä{'ö' * 71}\n", ""),  # Characters, not bytes.
        (f"area: {'x' * 67}\n", "the subject has 73 characters, and 72 are the limit"),
        ("area: short\nand on\n", "leave an empty line between"),
        ("\n\nbody\n", "the first line is empty"),
    ],
)
def test_a_commit_is_made_or_refused_by_its_message(tmp_path: Path, message: str, sentence: str) -> None:
    environment = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", f"core.hooksPath={HOOKS}")

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    git("init", "-q")
    (tmp_path / "message").write_text(message, encoding="utf-8")
    done = git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "message")
    assert (done.returncode == 0, sentence in done.stderr) == (not sentence, True), done.stderr
