"""Tries candidates in parallel, in a fixed order, and remembers the result of each.

The first candidate in order that shows the symptom wins, however many are tried at once, so that the result depends on
the run alone. Each result is written to a file at once: after kill -9 the same search reads it and goes on.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from harness.core.errors import ScenarioError
from harness.record.documents import decoded, whole_lines
from harness.run.pool import LocalPool
from harness.shrink.case import Case, Size

T = TypeVar("T")


class Tried(msgspec.Struct, frozen=True):
    """A line of the file: a candidate's key, and whether it showed the symptom."""

    key: str
    is_shown: bool


class Exhausted(Exception):
    """The allowed number of tries is used up."""


class Search:
    """The smallest case so far, `case`, and the tries that led to it.

    `examine` runs a case in another process, and returns True if it shows the symptom. `file` keeps the results.
    """

    def __init__(
        self,
        case: Case,
        examine: Callable[[Case], bool],
        file: Path,
        *,
        jobs: int,
        tries: int,
        tell: Callable[[Size, int], None],
    ) -> None:
        self.case, self.tries = case, 0
        self.path = [case]  # All cases that were the smallest so far, the recorded one first.
        self.seeds = 1  # The number of seeds tried for each candidate; the first is the case's own.
        self._most, self._tell = tries, tell
        self._known = {tried.key: tried.is_shown for tried in tries_in(file)}
        self._running: dict[str, Future[bool]] = {}
        try:
            self._file = file.open("ab")
        except OSError as error:
            advice = f"({error.strerror}), and each try is noted there: copy the run, and shrink that"
            raise ScenarioError(f"{file.parent}: takes no files {advice}") from None
        self._pool = LocalPool(examine, jobs)
        self._file.write(b"\n")  # Complete a line that a killed process left unfinished.

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.__exit__(kind, error, trace)
        self._file.close()

    def adopt(self, candidates: Iterable[Case]) -> bool:
        """Make the first candidate that shows the symptom the case; False if none does."""
        return self.first(list(candidates)) is not None

    def shows_now(self) -> bool:
        """True if the case so far shows the symptom in a run that is made now, whatever the file says of it."""
        return self._pool.submitted(self.case).result()

    def first(self, options: Sequence[Case]) -> int | None:
        """The index of the first option that shows the symptom with one of the seeds; it becomes the case.

        None if none does.
        """
        seed = self.case.scenario.seed
        candidates = [option.with_seed(seed + more) for option in options for more in range(self.seeds)]
        ahead: deque[Future[bool] | bool] = deque()
        submitted = 0
        for place, candidate in enumerate(candidates):
            while submitted < len(candidates) and len(ahead) < self._pool.slots:
                ahead.append(self._begun(candidates[submitted]))
                submitted += 1
            result = ahead.popleft()
            is_shown = result if isinstance(result, bool) else self._ended(result)
            if self.tries == self._most:
                raise Exhausted
            self.tries += 1
            self._tell(self.case.size(), self.tries)
            if is_shown:
                self.case = candidate
                self.path.append(candidate)
                return place // self.seeds
        return None

    def thin(self, items: Sequence[T], build: Callable[[tuple[T, ...]], Case]) -> tuple[T, ...]:
        """As few of the items as `build` needs to make a case with the symptom: smaller and smaller parts are left out.

        Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", TSE 2002.
        """
        kept, size = tuple(items), len(items)
        while size:
            place = 0
            while place < len(kept):
                options = [(start, kept[:start] + kept[start + size :]) for start in range(place, len(kept), size)]
                found = self.first([build(left) for _, left in options])
                if found is None:
                    break
                place, kept = options[found]
            size //= 2
        return kept

    def _begun(self, candidate: Case) -> "Future[bool] | bool":
        key = candidate.key()
        if key in self._known:
            return self._known[key]
        if key not in self._running:
            self._running[key] = self._pool.submitted(candidate)
        return self._running[key]

    def _ended(self, result: "Future[bool]") -> bool:
        is_shown = result.result()
        # Tries ahead are kept as well, though their turn may never come: after a kill they need not be made again.
        ended = [key for key, each in self._running.items() if each.done() and each.exception() is None]
        for key in ended:
            self._known[key] = self._running.pop(key).result()
            self._file.write(msgspec.json.encode(Tried(key, self._known[key])) + b"\n")
        self._file.flush()
        return is_shown


def tries_in(file: Path) -> Iterable[Tried]:
    """The tries in the file, without an unfinished last line, which a killed process leaves."""
    if not file.exists():
        return
    for line in whole_lines(file):
        with suppress(ValueError):
            yield decoded(line, Tried)
