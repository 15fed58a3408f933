"""Randomness for generators: an immutable value, so that a draw changes no other generator that holds it.

`Dice` and `Stream` serve different users. A machine draws from a stream, which is mutable. A generator must give the
same answer to the same query, so it holds dice, and its successor holds the dice after the draw.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import msgspec

_WORDS = 8  # One digest of blake2b holds eight integers of 64 bits.
_UNPACK = struct.Struct(f">{_WORDS}Q").unpack


class Dice(msgspec.Struct, frozen=True):
    """A key, and how many digests have been drawn with it. Draws are uniform but for a bias of bound / 2**64."""

    key: bytes
    position: int = 0

    @staticmethod
    def named(seed: int, name: str) -> "Dice":
        """The dice for that purpose and seed; other names give unrelated dice."""
        return Dice(blake2b(f"{seed}/{name}".encode(), digest_size=16).digest())

    def below(self, bound: int) -> "tuple[int, Dice]":
        """An integer in [0, bound), and the dice for the next draw."""
        return _below(self, bound)

    def each_below(self, bounds: Sequence[int]) -> "tuple[list[int], Dice]":
        """One integer in [0, bound) for each bound, and the dice after these draws. Cheaper than single draws."""
        key = self.key
        after = self.position + -(-len(bounds) // _WORDS)
        words = [
            word
            for position in range(self.position, after)
            for word in _UNPACK(blake2b(key + position.to_bytes(8, "big")).digest())
        ]
        return [word * bound >> 64 for word, bound in zip(words, bounds, strict=False)], Dice(key, after)


@lru_cache(maxsize=8_192)
def _below(dice: Dice, bound: int) -> tuple[int, Dice]:
    """The draw of `Dice.below`: cached, as an interpreter asks a generator several times for its next operation."""
    digest = blake2b(dice.key + dice.position.to_bytes(8, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") * bound >> 64, Dice(dice.key, dice.position + 1)
