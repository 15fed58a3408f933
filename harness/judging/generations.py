"""The generations of a history for the checks that judge them: each is written once, when a check first needs it."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from checkers.columns.facts import Facts
from checkers.engine.protocol import Check, Context
from checkers.history.generation_files import Part, is_whole, parts, write_part
from checkers.history.generations import merged, placement_of_streams, restarts
from checkers.history.stretches import Stretches, write_stretches
from harness.core.verdict import Judgement
from harness.record.ownership import temporary_folder

MANY: Final = 2  # More generations than this are judged at once; fewer cost less one by one.

JudgeParts = Callable[[Check, Sequence[tuple[Path, Context]]], list[Judgement]]


class Generations(Struct, frozen=True, dict=True):
    """The generations of `history`, in `files` while that is open. Checks in several threads may use it."""

    history: Path
    context: Context
    files: ExitStack
    _lock: RLock = field(default_factory=RLock)
    _written: dict[int, Path] = field(default_factory=dict)

    def judgement(self, check: Check, judged: JudgeParts) -> Judgement:
        """The judgement of that check, merged over all generations."""
        context = replace(self.context, is_locked=check.is_locked)
        with self._lock:
            selected = self._selected
        if all(map(is_whole, selected)):
            return merged(judged(check, [(self.history, context)]))
        stretches = self._stretches_for(check)
        found: list[Judgement] = []
        if stretches is not None:
            of_stretches = replace(context, stretches=stretches, whole=stretches.folder)
            earlier, last = judged(check, [(stretches.folder, of_stretches), (self._place(selected[-1]), context)])
            # Findings and open questions may mix generations: without them no generation has any.
            if not earlier.findings and not earlier.unknown:
                return merged([earlier, last], generations=len(selected))
            selected, found = selected[:-1], [last]
        if len(selected) > 1:  # What is known of all generations together may be more than the memory holds.
            context = replace(context, facts=Facts(is_kept=False))
        found = [*judged(check, [(self._place(part), context) for part in selected]), *found]
        return merged(found, generations=len(found))

    @cached_property
    def _selected(self) -> tuple[Part, ...]:
        bits = self.context.bounds.saved_bits
        known = restarts(self.history) if bits is not None else ()
        contract = self.context.contract if known else None
        reported = placement_of_streams(self.history, contract, self.context.bounds.views)
        return parts(known, bits, reported=reported)

    @cached_property
    def _folder(self) -> Path:
        """The folder of all parts: beside the history, where remote workers can read it."""
        beside = self.history.parent if os.access(self.history.parent, os.W_OK) else None
        return self.files.enter_context(temporary_folder("part", beside))

    def _place(self, part: Part) -> Path:
        """The folder of that part."""
        with self._lock:
            if part.generation not in self._written:
                place = self._folder / f"generation-{part.generation}"
                place.mkdir()
                write_part(self.history, place, part)
                self._written[part.generation] = place
            return self._written[part.generation]

    @cached_property
    def _stretches(self) -> Stretches | None:
        """The generations before the last as stretches; None if these cannot be made."""
        last, place = self._selected[-1], self._folder / "stretches"
        place.mkdir()
        return write_stretches(self.history, place, last.restarts, saved_bits=last.saved_bits, reported=last.reported)

    def _stretches_for(self, check: Check) -> Stretches | None:
        """The stretches, if that check can judge them, and there are many generations."""
        if len(self._selected) <= MANY or not check.of_stretches:
            return None
        with self._lock:
            return self._stretches


@contextmanager
def generations(history: Path, context: Context) -> Iterator[Generations]:
    """The generations of that history; their files are removed on exit."""
    with ExitStack() as files:
        yield Generations(history, replace(context, whole=history, facts=Facts()), files)
