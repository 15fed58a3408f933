"""Numbers with nouns, for people."""


def counted(number: int, noun: str) -> str:
    """The number with its noun: "1 run", "2,000 runs", "3 witnesses"."""
    plural = {"witness": "witnesses", "try": "tries"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"
