"""docs/calibration.md and the table of README.md. `python -m harness.campaign.calibration.pages` writes them again.

Both follow from docs/calibration.json, which `seamark calibrate ... --json` prints.
"""

from pathlib import Path
from textwrap import fill
from typing import Final

from harness.campaign.calibration.document import CALIBRATION_FILE, Calibration, read_calibration
from harness.campaign.calibration.shown import calibration_markdown
from harness.core.wording import counted
from harness.report.markdown import table

ROOT: Final = Path(__file__).resolve().parents[3]
SOURCE: Final = ROOT / "docs" / CALIBRATION_FILE
PAGE: Final = ROOT / "docs" / "calibration.md"
README: Final = ROOT / "README.md"
BEGIN: Final = "<!-- calibration: python -m harness.campaign.calibration.pages writes it -->\n"
END: Final = "<!-- end of calibration -->\n"
LINE_MAX: Final = 120
HEAD: Final = ("cluster", "planted bugs found", "seeds for each bug", "client checks find", "false alarms")


def rewritten(readme: str, calibration: Calibration) -> str:
    """README.md with the part between its two markers written anew; the rest stays."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    return "".join((before, begin, _part(calibration), end, after))


def _part(calibration: Calibration) -> str:
    """One row for each cluster: bugs found by drawn seeds, and alarms of runs without a bug."""
    rows = []
    for correct in calibration.correct:
        cells = [cell for cell in calibration.bugs if cell.cluster == correct.cluster]
        medians = [cell.median_seeds for cell in cells if cell.median_seeds is not None]
        rows.append(
            (
                f"`{correct.cluster}`",
                f"{sum(cell.hits > 0 for cell in cells)} of {len(cells)}",
                f"{min(medians)} to {max(medians)}" if len(medians) > 1 else str(*medians),
                f"{sum(cell.is_client_more for cell in cells)} of {len(cells)}",
                f"{correct.false_alarms} in {counted(correct.runs, 'run')}",
            )
        )
    about = (
        f"Drawn seeds, {calibration.time_s:g} s of load and drawn faults each. *Seeds for each bug*: this number of "
        "seeds gives an even chance of finding the bug. *Client checks*: a checker of client transactions alone finds "
        "more than without the bug. [Each bug, with rates and intervals](docs/calibration.md)."
    )
    text = [*table(HEAD, rows), "", fill(about, LINE_MAX, break_on_hyphens=False)]
    return "".join(f"{line}\n" for line in text)


def main() -> None:
    """Write both from docs/calibration.json."""
    calibration = read_calibration(SOURCE)
    PAGE.write_text(calibration_markdown(calibration), encoding="utf-8")
    README.write_text(rewritten(README.read_text(encoding="utf-8"), calibration), encoding="utf-8")


if __name__ == "__main__":
    main()
