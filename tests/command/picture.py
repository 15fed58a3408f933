"""The picture of README: the demo's report in a browser. `make picture` takes it anew.

A picture cannot be compared byte by byte, as browsers draw text differently. So the digest covers the page's templates
and the report's content, and tests compare the digest.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from harness.report.model import read_report
from tests.command.chromium import chromium

ROOT: Final = Path(__file__).resolve().parents[2]
PICTURE: Final = ROOT / "docs" / "report.png"
DIGEST: Final = ROOT / "docs" / "report.png.json"
TEMPLATES: Final = ROOT / "harness" / "report" / "templates"
CLUSTER: Final = ("--cluster", "ndb", "--bug", "lib-any-node-completes")
DEMO: Final = (*CLUSTER, "--seed", "8", "--time", "20", "--engine", "local")  # As `make demo`.
WIDTH: Final = 940
HEIGHT: Final = 680
# Fields of a report that differ from run to run.
IN_PASSING: Final = ("run", "page", "seconds", "started_utc", "versions", "engine")


class Digest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """SHA-256 of the templates of a report's page, and of the demo's report."""

    templates: str
    report: str


def of_templates() -> str:
    """The digest of the templates that make a report's page."""
    names = ("frame.html", "page.html", "shapes.html", "style.html", "script.html", "copy.html")
    return hashlib.sha256(b"\0".join((TEMPLATES / name).read_bytes() for name in names)).hexdigest()


def of_report(run: Path) -> str:
    """The digest of a run's report.json, without the fields that differ from run to run."""
    report = msgspec.to_builtins(read_report(run))
    lasting = {name: value for name, value in report.items() if name not in IN_PASSING}
    return hashlib.sha256(msgspec.json.encode(lasting, order="sorted")).hexdigest()


def stored() -> Digest:
    """The digest of the picture's sources when it was taken."""
    return msgspec.json.decode(DIGEST.read_bytes(), type=Digest)


def main() -> None:
    """Run the demo, take the picture of its page, and write both files."""
    with tempfile.TemporaryDirectory(prefix="picture-") as folder:
        command = [str(Path(sys.executable).with_name("seamark")), "run", *DEMO, "--quiet"]
        subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        (run,) = (Path(folder) / "store" / "ndb").iterdir()
        with chromium() as tab:
            tab.size(WIDTH, HEIGHT)
            tab.open((run / "report.html").as_uri())
            tab.value("document.documentElement.style.overflow = 'hidden'")  # No scroll bar.
            tab.picture(PICTURE)
        digest = Digest(templates=of_templates(), report=of_report(run))
    DIGEST.write_bytes(msgspec.json.format(msgspec.json.encode(digest), indent=1) + b"\n")


if __name__ == "__main__":
    main()
