"""scripts/docker, with an engine that is made up: what it starts stays, and it says so and how to stop it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repo.test_docs import ROOT

ASKED = "#!/bin/sh\n[ -e {up} ] || echo no engine\n"
DOCKERD = """#!/bin/sh
while [ $# -gt 1 ]; do
	[ "$1" != --pidfile ] || echo $$ >"$2"
	shift
done
touch {up}
sleep 600 &
trap 'kill $!; rm {up}; exit' TERM
wait
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may start an engine")
@pytest.mark.skipif(Path("/run/systemd/system").is_dir(), reason="systemd starts the engine of this machine")
@pytest.mark.skipif(shutil.which("apt-get") is None, reason="only on Debian does the script start an engine")
def test_an_engine_that_it_starts_stays_and_the_command_it_names_stops_it(tmp_path: Path) -> None:
    up = tmp_path / "up"
    program(tmp_path / "scripts" / "docker", (ROOT / "scripts" / "docker").read_text())
    program(tmp_path / ".venv" / "bin" / "python", ASKED.format(up=up))
    program(tmp_path / "bin" / "dockerd", DOCKERD.format(up=up))
    for name in ("iptables", "debootstrap"):
        program(tmp_path / "bin" / name, "#!/bin/sh\n")
    environment = os.environ | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "SEAMARK_DOCKER_FOLDER": str(tmp_path / "engine"),
    }
    environment.pop("DOCKER_HOST", None)
    script = [str(tmp_path / "scripts" / "docker")]
    first = subprocess.run(script, env=environment, capture_output=True, text=True, check=True).stdout
    stop = re.search(
        r"^docker: it was started here and goes on running, .*; to stop it: (kill .+)$", first, re.MULTILINE
    )
    assert stop is not None, first
    again = subprocess.run(script, env=environment, capture_output=True, text=True, check=True).stdout
    assert again == ""  # It is there, and whose it is was said.
    assert up.exists()
    subprocess.run(["sh", "-c", f"{stop[1]}; while [ -e {up} ]; do sleep 0.01; done"], check=True, timeout=60)
