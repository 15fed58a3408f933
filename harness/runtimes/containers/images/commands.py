"""Commands that a build runs on this machine, with a log that is kept if they fail."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.core.errors import DeployError

TAIL_LINES = 6


class Log:
    """The output of one image's build: a file in the temporary folder with the build's other files."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.path = folder / "build.log"
        self.path.touch()

    def write(self, text: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    def failure(self, command: str, code: int | None) -> DeployError:
        """The error for a failed command, with the log's last lines; all files but the log are removed."""
        lines = [line.strip() for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines()]
        tail = " | ".join([line for line in lines if line][-TAIL_LINES:])
        exited = "" if code is None else f" (exit {code})"
        for path in self.folder.iterdir():
            if path != self.path:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        return DeployError(
            f"the image {self.name} could not be built: {command}{exited}: {tail}; all of it: {self.path}"
        )

    def discard(self) -> None:
        """Remove the log and everything else that the build left on this machine."""
        shutil.rmtree(self.folder, ignore_errors=True)


def run(
    command: Sequence[str],
    log: Log,
    *,
    missing: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> None:
    """Run a command into the log, in that folder.

    Raises DeployError: `missing` if the program does not exist, else with its output.
    """
    if shutil.which(command[0]) is None:
        log.discard()
        raise DeployError(missing)
    with log.path.open("ab") as output:
        code = subprocess.run(  # noqa: S603  Commands come from our own code.
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | (environment or {}),
            cwd=folder,
            check=False,
        ).returncode
    if code != 0:
        raise log.failure(" ".join(command), code)


def apt_mirror() -> list[str]:
    """The mirror of Debian packages in this machine's apt settings; empty for debootstrap's default."""
    if shutil.which("apt-get") is None:
        return []
    wanted = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(wanted, capture_output=True, text=True, check=False).stdout  # noqa: S603
    rows = [line.split() for line in listed.splitlines()]
    mirrors = [row[2] for row in rows if len(row) == 3 and row[:2] == ["Debian", "main"] and row[2].startswith("http")]
    return [mirror for mirror in mirrors if not mirror.rstrip("/").endswith("-security")][:1]
