"""docs/calibration.md and the table of README.md. `python -m harness.campaign.calibration.pages` writes them again.

Both follow from docs/calibration.json, which `seamark calibrate ... --json` prints.
"""

from pathlib import Path
from textwrap import fill
from typing import Final

from harness.campaign.calibration.document import CALIBRATION_FILE, Calibration, read_calibration
from harness.campaign.calibration.shown import calibration_markdown, correct_sentence, seeds_shown
from harness.report.markdown import escaped, table

ROOT: Final = Path(__file__).resolve().parents[3]
SOURCE: Final = ROOT / "docs" / CALIBRATION_FILE
PAGE: Final = ROOT / "docs" / "calibration.md"
README: Final = ROOT / "README.md"
BEGIN: Final = "<!-- calibration: python -m harness.campaign.calibration.pages writes it -->\n"
END: Final = "<!-- end of calibration -->\n"
LINE_MAX: Final = 120
HEAD: Final = ("bug", "what is coded wrong", "found by", "runs", "seeds")


def rewritten(readme: str, calibration: Calibration) -> str:
    """README.md with the part between its two markers written anew; the rest stays."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    return "".join((before, begin, _part(calibration), end, after))


def _part(calibration: Calibration) -> str:
    rows = [
        (
            f"`{cell.cluster}` `{cell.bug}`",
            escaped(cell.description),
            f"{cell.anomaly} ({cell.promise})" if cell.anomaly else "–",
            f"{cell.hits} of {cell.runs}",
            seeds_shown(cell),
        )
        for cell in calibration.bugs
    ]
    drawn = f"{calibration.time_s:g} s of load and drawn faults, until {calibration.hits_max} runs show the bug"
    about = (
        f"Seeds from 0 on, {drawn} or {calibration.runs_max} are made. *seeds*: as many show it with a chance of one "
        "half; *scripted only*: no seed did, but its schedule does. [Rates, intervals, and which check finds it]"
        "(docs/calibration.md)."
    )
    text = [
        fill(about, LINE_MAX, break_on_hyphens=False),
        "",
        *table(HEAD, rows),
        "",
        *map(correct_sentence, calibration.correct),
    ]
    return "".join(f"{line}\n" for line in text)


def main() -> None:
    """Write both from docs/calibration.json."""
    calibration = read_calibration(SOURCE)
    PAGE.write_text(calibration_markdown(calibration), encoding="utf-8")
    README.write_text(rewritten(README.read_text(encoding="utf-8"), calibration), encoding="utf-8")


if __name__ == "__main__":
    main()
