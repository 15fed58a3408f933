"""What a user declares of registers: how to read a history of them, and what orders their versions in transactions."""

from enum import Enum
from typing import Final, Literal

import msgspec

from harness.core.record import Json

ModelName = Literal["register", "cas-register", "mutex", "key-value", "multi-register"]


class Register(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading a history of registers.

    `model` None: derived from the names of the operations. `initial`: the value of each register at first; null is
    nothing, and for key-value the empty text. Unless it is declared as known, a register may have held what nobody
    wrote. `nil`: the meaning of a read that answers null: "absent" says that nothing is there, "anything" says nothing
    at all.
    """

    model: ModelName | None = None
    initial: Json = None
    is_initial_known: bool = False
    nil: Literal["absent", "anything"] = "anything"


class Trust(Enum):
    """Use of an order of time for versions: none, only as in theory of operation 6, or for every model."""

    NONE = "not used"
    TIMED = "timed"
    GIVEN = "given"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of the order of versions. The initial state is always one.

    `commits`: the positions that the system itself reported for its transactions order their writes.
    """

    writes_follow_reads: bool = True
    commits: bool = False
    process: Trust = Trust.TIMED
    real_time: Trust = Trust.TIMED

    def described(self) -> dict[str, str]:
        """Each source, and its use."""
        return {
            "initial-state": Trust.GIVEN.value,
            "commits": (Trust.GIVEN if self.commits else Trust.NONE).value,
            "writes-follow-reads": (Trust.GIVEN if self.writes_follow_reads else Trust.NONE).value,
            "process": self.process.value,
            "real-time": self.real_time.value,
        }


ORDER: Final = Order()
