"""docs/calibration.md and the table of README.md. `python -m harness.campaign.calibration.pages` writes them again.

Both follow from docs/calibration.json, which `seamark calibrate ... --json` prints.
"""

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Final

from harness.campaign.calibration.document import CALIBRATION_FILE, Calibration, read_calibration
from harness.campaign.calibration.shown import calibration_markdown
from harness.core.wording import counted
from harness.report.markdown import table
from harness.scenario.consent import cluster_names, installed
from harness.scenario.registry import load_cluster

ROOT: Final = Path(__file__).resolve().parents[3]
SOURCE: Final = ROOT / "docs" / CALIBRATION_FILE
PAGE: Final = ROOT / "docs" / "calibration.md"
README: Final = ROOT / "README.md"
BEGIN: Final = "<!-- calibration: python -m harness.campaign.calibration.pages writes it -->\n"
END: Final = "<!-- end of calibration -->\n"
LINE_MAX: Final = 120
HEAD: Final = ("design", "promises", "bugs planted", "found by drawn runs", "clients alone", "false alarms")


@dataclass(frozen=True, slots=True)
class Design:
    """A row of README.md: the clusters that make it. `catalogued`: how many bugs its catalogue has, if it has one."""

    name: str
    clusters: tuple[str, ...]
    catalogued: int | None = None


DESIGNS: Final = (
    Design("NDB: epochs, MySQL Cluster", ("ndb", "ndb-replica", "ndb-active"), 67),
    Design("TiCDC: resolved timestamps", ("ticdc",), 39),
    Design("Pravega: scaling streams", ("pravega",), 37),
    Design("Materialize: timestamp oracle", ("materialize",), 35),
    Design("Drizzle: transaction messages", ("drizzle",), 53),
    Design("PostgreSQL, in containers", ("postgres",)),
    Design("tutorial", ("tutorial",)),
)


def rewritten(readme: str, calibration: Calibration) -> str:
    """README.md with the part between its two markers written anew; the rest stays."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    return "".join((before, begin, _part(calibration), end, after))


def _part(calibration: Calibration) -> str:
    """One row for each calibrated design: bugs found by drawn seeds, and alarms of runs without a bug."""
    measured = {each.cluster for each in calibration.samplings}
    rows = [_row(design, calibration) for design in DESIGNS if measured.intersection(design.clusters)]
    about = (
        "Drawn seeds, workloads and faults. *Bugs planted*: how many bugs of the design's catalogue the model can "
        "have. *Found by drawn runs*: how many of the measured bugs. *Clients alone*: how many of them a checker that "
        "sees only the clients' operations would notice. [Each bug's rate](docs/calibration.md)."
    )
    text = [*table(HEAD, rows), "", fill(about, LINE_MAX, break_on_hyphens=False)]
    return "".join(f"{line}\n" for line in text)


def _row(design: Design, calibration: Calibration) -> tuple[str, ...]:
    clusters = [load_cluster(installed(name)) for name in design.clusters if name in cluster_names()]
    names = [cluster.name for cluster in clusters]
    cells = [cell for cell in calibration.bugs if cell.cluster in names]
    correct = [each for each in calibration.correct if each.cluster in names]
    planted = sum(len(cluster.bugs) for cluster in clusters)
    return (
        f"{design.name}: {', '.join(f'`{name}`' for name in names)}",
        str(len({promise.id for cluster in clusters for promise in cluster.promises})),
        str(planted) if design.catalogued is None else f"{planted} of {design.catalogued}",
        f"{sum(cell.hits > 0 for cell in cells)} of {len(cells)}",
        str(sum(cell.is_client_more for cell in cells)),
        f"{sum(each.false_alarms for each in correct)} in {counted(sum(each.runs for each in correct), 'run')}",
    )


def main() -> None:
    """Write both from docs/calibration.json."""
    calibration = read_calibration(SOURCE)
    PAGE.write_text(calibration_markdown(calibration), encoding="utf-8")
    README.write_text(rewritten(README.read_text(encoding="utf-8"), calibration), encoding="utf-8")


if __name__ == "__main__":
    main()
