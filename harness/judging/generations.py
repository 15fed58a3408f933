"""The generations of a history for the checks that judge them: each is written once, when a check first needs it."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Final

import msgspec

from checkers.engine.protocol import AtOnce, Check, Context
from checkers.history.generation_files import Part, is_whole, parts, write_part
from checkers.history.generations import merged, placement_of_streams, restarts
from checkers.history.stretches import Stretches, write_stretches
from harness.core.verdict import Judgement
from harness.record.ownership import temporary_folder

MANY: Final = 2  # More generations than this are judged at once; fewer cost less one by one.

JudgeParts = Callable[[Check, Sequence[Path], Context], list[Judgement]]


@dataclass(frozen=True)
class Generations:
    """The generations of `history`, in `files` while that is open. Checks in several threads may use it."""

    history: Path
    context: Context
    files: ExitStack
    _lock: RLock = field(default_factory=RLock)
    _written: dict[tuple[bool, int], Path] = field(default_factory=dict)
    _stretches: dict[bool, Stretches | None] = field(default_factory=dict)

    def judgement(self, check: Check, judged: JudgeParts) -> Judgement:
        """The judgement of that check, merged over all generations."""
        selected = self._parts(is_locked=check.is_locked)
        if all(map(is_whole, selected)):
            return merged(judged(check, [self.history], self.context))
        earlier = self._before_last(check, selected[-1], judged) if len(selected) > MANY else None
        left = selected if earlier is None else selected[-1:]
        found = [] if earlier is None else [earlier]
        found += judged(check, [self._place(part) for part in left], self.context)
        return merged(found, generations=len(selected))

    def _parts(self, *, is_locked: bool) -> tuple[Part, ...]:
        with self._lock:
            return tuple(replace(part, is_locked=is_locked) for part in self._selected)

    @cached_property
    def _selected(self) -> tuple[Part, ...]:
        bits = self.context.bounds.saved_bits
        known = restarts(self.history) if bits is not None else ()
        reported = placement_of_streams(self.history, self.context.contract if known else None)
        return parts(known, bits, reported=reported)

    @cached_property
    def _folder(self) -> Path:
        """The folder of all parts: beside the history, where remote workers can read it."""
        beside = self.history.parent if os.access(self.history.parent, os.W_OK) else None
        return self.files.enter_context(temporary_folder("part", beside))

    def _place(self, part: Part) -> Path:
        """The folder of that part."""
        what = (part.is_locked, part.generation)
        with self._lock:
            if what not in self._written:
                place = self._folder / f"generation-{part.generation}{'-locked' * part.is_locked}"
                place.mkdir()
                write_part(self.history, place, part)
                self._written[what] = place
            return self._written[what]

    def _at_once(self, last: Part) -> Stretches | None:
        """The generations before the last as stretches; None if these cannot be made."""
        with self._lock:
            if last.is_locked not in self._stretches:
                place = self._folder / f"stretches{'-locked' * last.is_locked}"
                place.mkdir()
                self._stretches[last.is_locked] = write_stretches(
                    self.history,
                    place,
                    last.restarts,
                    saved_bits=last.saved_bits,
                    reported=last.reported,
                    is_locked=last.is_locked,
                )
            return self._stretches[last.is_locked]

    def _before_last(self, check: Check, last: Part, judged: JudgeParts) -> Judgement | None:
        """The judgement of all generations but the last, at once; None if each must be judged by itself.

        That is so if there are findings or open questions, as these may mix generations. Without them no generation has
        any.
        """
        stretches = None if check.at_once is AtOnce.NO else self._at_once(last)
        if stretches is None:
            return None
        context = replace(self.context, stretches=stretches)
        [judgement] = judged(check, [stretches.folder], replace(context, whole=stretches.folder))
        if judgement.findings or judgement.unknown:
            return None
        if check.at_once is AtOnce.BY_ITSELF:
            return judgement
        witnesses: Counter[str] = Counter()
        counted = judged(check, [place for _, place in stretches.parts], context)
        for (length, _), part in zip(stretches.parts, counted, strict=True):
            witnesses.update({name: length * count for name, count in part.witnesses.items()})
        return msgspec.structs.replace(judgement, witnesses=dict(witnesses))


@contextmanager
def generations(history: Path, context: Context) -> Iterator[Generations]:
    """The generations of that history; their files are removed on exit."""
    with ExitStack() as files:
        yield Generations(history, replace(context, whole=history), files)
