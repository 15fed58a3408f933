"""`seamark check --suggest` and `--explain`: how the lines of a change stream are, or could be, understood."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from harness.core.errors import HistoryError, ScenarioError
from harness.core.record import Json
from harness.record.formats.load import require_present
from harness.record.formats.streams.line import Content, Place, StreamFormat
from harness.record.formats.streams.lines import first_lines, lines_of
from harness.record.formats.streams.mappings.known import likeness, stream_format, text_of
from harness.record.formats.streams.mappings.suggest import suggestion
from harness.report.screen import say

_LINES: Final = 200  # First lines that are looked at.
_EVENTS: Final = 10
_WIDEST: Final = 60


def show_mapping(path: Path, stream: str | None, key: str | None, *, is_suggestion: bool) -> int:
    """Print a mapping file for that file, or the first events as the format `stream` understands them."""
    require_present(path)
    if not is_suggestion:
        if stream is None:
            raise ScenarioError("--explain shows how a mapping file is understood: write --stream")
        for line in explained(path, stream_format(stream, key)):
            say(Console(highlight=False), line, is_whole=True)
        return 0
    lines = first_lines(path, _LINES)
    known = [each.name for each in likeness(lines) if not each.lacking]
    text = f'format = "{known[0]}"\n' if known else suggestion(lines)
    if text is None:
        raise ScenarioError(f"{path}: its lines are no JSON objects, and no text of a tool that is known")
    if known:
        own = text_of(known[0])
        text = f"# It is in the format {known[0]}: --stream {known[0]} reads it." + (
            f" This is its mapping file.\n{own}" if own else f"\n{text}"
        )
    sys.stdout.write(f"{text.rstrip()}\n")
    return 0


def explained(path: Path, form: StreamFormat) -> Iterator[str]:
    """A line for each of the first events. Raises HistoryError for a line that cannot be read."""
    if form.begin is not None:
        form.begin()
    for place, content in islice(_contents(path, form), _EVENTS):
        words = [f"{place}:", content.kind]
        words += [f"{name}={_shown(value)}" for name, value in _parts(content) if value is not None]
        yield "  ".join(words)


def _contents(path: Path, form: StreamFormat) -> Iterator[tuple[str, Content]]:
    for place, line in lines_of(path):
        try:
            for content in form.read(line):
                yield place, content
        except ValueError as error:
            raise HistoryError(f"{path}, {place}: {error}") from None


def _parts(content: Content) -> Iterator[tuple[str, Json | Place]]:
    for name in ("key", "value", "position", "unit", "ordinal", "unit_rows", "epoch"):
        yield name, getattr(content, name)
    yield "partition", content.span
    yield "before", None if content.before is None else content.before.image
    yield from (("session", content.session or None), ("site", content.site), ("origin", content.origin))


def _shown(value: Json | Place) -> str:
    if isinstance(value, Place):
        return value.shown(tuple(part or 0 for part in value.parts))
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."
