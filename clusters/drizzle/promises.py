"""The promises of the design, and the contract of its stream. The numbers come from the specification (part D2)."""

from typing import Final

from harness.core.promises import Promise, StreamContract

SEED: Final = "Drizzle documentation, Replication (clusters/drizzle/README.md)"

STREAM = StreamContract(
    closed="<=",
    cut="position",
    position="offset",
    order_key="partition",
    unit_scope="partition",
    is_position_global=False,
    wm_scope="partition",
    partitions=2,
    sessions="joined",
    tail="settled",
)


def _promise(number: int, text: str, *forbids: str, is_purpose: bool = False) -> Promise:
    return Promise(id=f"DRZ-G{number}", text=text, source=SEED, forbids=forbids, is_purpose=is_purpose)


PROMISES: tuple[Promise, ...] = (
    _promise(1, "Transactions on a master are strictly serializable.", "strict-serializable", is_purpose=True),
    _promise(
        2,
        "Each acknowledged transaction is in each log that admits it.",
        "unlogged-commit",
        "missing-event",
        is_purpose=True,
    ),
    _promise(
        3, "A transaction in a log was not refused, and nothing undone counts there.", "phantom-commit", "abandoned-row"
    ),
    _promise(4, "A transaction ends once in a log, with its last piece.", "piece-after-end"),
    _promise(5, "The pieces of a transaction are numbered from 1, in order.", "piece-order", is_purpose=True),
    _promise(6, "The pieces of a statement follow each other, or the statement is cancelled.", "broken-framing"),
    _promise(7, "A transaction does not end inside a statement.", "broken-framing"),
    _promise(
        8,
        "The pieces of a transaction have its rows, once, in their order.",
        "wrong-content",
        "wrong-value",
        is_purpose=True,
    ),
    _promise(9, "Rows of a failed statement never count, and those before it do.", "failed-row", "wrong-content"),
    _promise(10, "Rows that were taken back to a savepoint never count.", "savepoint-row"),
    _promise(11, "Logs have transactions in the order of their commits.", "log-order", "streams-differ"),
    _promise(12, "Commit ids rise with the table log, each used once.", "commit-id"),
    _promise(
        13, "An acknowledged transaction is in the logs after every crash.", "unlogged-commit", "stale-acknowledged"
    ),
    _promise(14, "After recovery rows and logs have the same transactions.", "engine-unlike-log"),
    _promise(15, "A file log is a sequence of whole records, each at its offset.", "bad-record"),
    _promise(16, "No piece has more rows than the threshold.", "oversize-piece"),
    _promise(17, "No two transactions have one id.", "reused-id"),
    _promise(18, "All pieces of a transaction name the same context.", "changed-context"),
    _promise(
        19,
        "A read on a replica shows all rows of a transaction or none, and none that was undone.",
        "torn-transaction",
        "phantom-element",
        is_purpose=True,
    ),
    _promise(
        20,
        "A replica shows the state after a prefix of its source's log, and never an earlier one than before.",
        "torn-prefix",
        "prefix-regress",
        is_purpose=True,
    ),
    _promise(21, "Each transaction is applied once on each replica.", "repeated-element", "skipped-element"),
    _promise(22, "A replica's position agrees with its rows.", "false-position"),
    _promise(23, "At rest a replica has the rows of its masters.", "diverged"),
    _promise(24, "The filtered log has the admitted part of the full log.", "wrong-projection"),
    _promise(25, "All logs of a master have the same transactions.", "streams-differ"),
    _promise(26, "A transaction keeps its origin, and never comes back to it.", "loop"),
    _promise(27, "Nobody who reads a log delays a commit.", "waiting-commit"),
    _promise(28, "Each transaction of which a piece went out ends in the log.", "open-unit", "stopped-replica"),
    _promise(29, "A replica shows what it left out, and leaves out whole transactions.", "left-out", "never-left-out"),
    _promise(30, "Rows come under the version of their table at their commit.", "wrong-version"),
    _promise(31, "An update without effect is not logged.", "noise"),
)
