"""Promises of a server's documentation: each with a number, and the place where it is made."""

from dataclasses import dataclass

from harness.core.promises import Promise


@dataclass(frozen=True, slots=True)
class Documentation:
    """Makes promises: `prefix` begins their ids, and `source` has one {}, for the place of each."""

    prefix: str
    source: str

    def promise(
        self, number: int, text: str, place: str, *forbids: str, check: str | None = None, is_purpose: bool = False
    ) -> Promise:
        """The promise of that number."""
        return Promise(
            id=f"{self.prefix}-{number}",
            text=text,
            source=self.source.format(place),
            forbids=forbids,
            check=check,
            is_purpose=is_purpose,
        )
