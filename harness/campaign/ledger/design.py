"""The design of a sweep: the runs that it consists of, as data. No cluster is loaded to read it."""

from typing import Annotated, Final

import msgspec

from harness.campaign.ledger.orders import CampaignOrder
from harness.record.bounded import Amount, Positive, Seed, Sha256
from harness.scenario.scenario import Scenario

RUNS_MAX: Final = 1_000_000
CELLS_MAX: Final = 10_000


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of a matrix, with `count` runs.

    `scenario` is that of its runs, without the seed; `cluster` is the name for people. `code_sha256` is the hash of the
    file that defines the cluster, None for an installed one.
    """

    cluster: str
    workload: str
    faults: str  # Packages of faults separated by commas; "usual" for those of the cluster, "none" for none.
    scenario: Scenario
    code_sha256: Sha256 | None
    count: Annotated[int, msgspec.Meta(ge=1, le=RUNS_MAX)]

    @property
    def title(self) -> str:
        """The cell's name on the screen."""
        bugs = f" with {', '.join(self.scenario.bugs)}" if self.scenario.bugs else ""
        return f"{self.cluster} {self.workload}, faults {self.faults}, {self.scenario.runtime}{bugs}"


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a sweep: those of its cells, with seeds from `seed` on.

    `text` is the config as written, at `path`, and `sha256` the hash of it with the seed and the code in files. With
    fewer runs than `min_runs` the sweep is vacuous; no run begins after `time_budget` seconds of real time.
    """

    path: str
    text: str
    sha256: Sha256
    name: str
    seed: Seed
    min_runs: Positive
    time_budget: Amount | None
    cells: Annotated[tuple[Cell, ...], msgspec.Meta(min_length=1, max_length=CELLS_MAX)]

    def __post_init__(self) -> None:
        if not self.min_runs <= self.planned <= RUNS_MAX:
            raise ValueError(f"{self.planned:,} runs are planned, and it needs {self.min_runs:,}")

    @property
    def planned(self) -> int:
        """The number of all runs."""
        return sum(cell.count for cell in self.cells)

    def has(self, cell: int, seed: int) -> bool:
        """True if it has a run of that seed in the cell with that number."""
        return 0 <= cell < len(self.cells) and 0 <= seed - self.seed < self.cells[cell].count

    def alone(self) -> "Design":
        """The design without what else a config has."""
        return Design(**{name: getattr(self, name) for name in Design.__struct_fields__})


class Order(CampaignOrder, frozen=True, kw_only=True):
    """The order of a sweep."""

    design: Design
