"""The promises of the design, and the contract of its stream. The numbers come from the specification (part D2)."""

from typing import Final

from harness.core.promises import Promise

SEED: Final = "Drizzle documentation, Replication (clusters/drizzle/README.md)"


def _promise(number: int, text: str, *forbids: str, is_purpose: bool = False) -> Promise:
    return Promise(id=f"DRZ-G{number}", text=text, source=SEED, forbids=forbids, is_purpose=is_purpose)


PROMISES: tuple[Promise, ...] = (
    _promise(1, "Transactions on a master are strictly serializable.", "strict-serializable", is_purpose=True),
)
