"""Streams whose events are moved about."""

from tests.worlds.streams.language import Event


def moved_about(log: list[Event]) -> list[Event]:
    """The log with every third row that has a partition on the other one."""
    changed = {t for t, event in enumerate(log) if event.span >= 0 and event.key != -1 and t % 3 == 0}
    return [
        Event(**{name: getattr(e, name) for name in Event.__slots__} | ({"span": 1 - e.span} if t in changed else {}))
        for t, e in enumerate(log)
    ]
