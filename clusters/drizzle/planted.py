"""The planted bugs, by the numbers of the specification's catalogue (part D3). Each is read in at most two places."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

END_FLAG_ALWAYS_TRUE: Final = "end-flag-always-true"
SEG_ID_NOT_RAISED: Final = "seg-id-not-raised"
TRX_ID_NEW_PER_PIECE: Final = "trx-id-new-per-piece"
NO_ROLLBACK_MESSAGE: Final = "no-rollback-message"
ROLLBACK_BY_STATEMENT_SEG: Final = "rollback-by-statement-seg"
ROLLBACK_OWN_ID: Final = "rollback-own-id"
ROLLBACK_FOR_SINGLE: Final = "rollback-for-single"
STMT_ERROR_CLEARS_ALL: Final = "stmt-error-clears-all"
EMPTY_FINAL_DROPPED: Final = "empty-final-dropped"
STMT_ERROR_KEEPS_PARTIAL: Final = "stmt-error-keeps-partial"
STMT_ERROR_SEGMENTED_IGNORED: Final = "stmt-error-segmented-ignored"
SAVEPOINT_COPY: Final = "savepoint-copy"
SAVEPOINT_IGNORED: Final = "savepoint-ignored"
MID_PIECE_ERROR_IGNORED: Final = "mid-piece-error-ignored"
LOG_ERROR_IS_SUCCESS: Final = "log-error-is-success"
LOG_BEFORE_COMMIT_NO_RECOVERY: Final = "log-before-commit-no-recovery"
LOG_AFTER_COMMIT: Final = "log-after-commit"
APPEND_AFTER_TORN: Final = "append-after-torn"
COMMIT_ID_BEFORE_COMMIT: Final = "commit-id-before-commit"
DIRTY_LOG_READ: Final = "dirty-log-read"
LOG_ORDER_NOT_COMMIT_ORDER: Final = "log-order-not-commit-order"
POLL_UNORDERED: Final = "poll-unordered"
ROLLBACK_PIECE_ALONE: Final = "rollback-piece-alone"
APPLY_INCOMPLETE: Final = "apply-incomplete"
BUFFER_BY_SERVER_ONLY: Final = "buffer-by-server-only"
BUFFER_BY_TRX_ONLY: Final = "buffer-by-trx-only"
QUEUE_INSERT_NOT_ATOMIC: Final = "queue-insert-not-atomic"
POSITION_IN_MEMORY: Final = "position-in-memory"
APPLY_THEN_DELETE: Final = "apply-then-delete"
POSITION_BEFORE_APPLY: Final = "position-before-apply"
DDL_SPLITS_APPLY: Final = "ddl-splits-apply"
STREAMING_WITHOUT_UNDO: Final = "streaming-without-undo"
CRASH_LEAVES_OPEN: Final = "crash-leaves-open"
DUP_TRX_ID_RAW_SQL: Final = "dup-trx-id-raw-sql"
TRX_ID_32BIT: Final = "trx-id-32bit"
READER_STUCK_ON_DELETED: Final = "reader-stuck-on-deleted"
OWN_CHANGES_BACK: Final = "own-changes-back"
ORIGIN_OVERWRITTEN: Final = "origin-overwritten"
IGNORE_ERRORS_PARTIAL: Final = "ignore-errors-partial"
FILTER_DROPS_FINAL: Final = "filter-drops-final"
TWO_STREAMS_PARTIAL: Final = "two-streams-partial"
NULL_AND_ESCAPE: Final = "null-and-escape"
UPDATE_BY_FULL_ROW: Final = "update-by-full-row"
NOOP_UPDATE_LOGGED: Final = "noop-update-logged"
THRESHOLD_ON_STATEMENT: Final = "threshold-on-statement"
SYNC_SKIPPED: Final = "sync-skipped"
COMMIT_WAITS_REPLICA: Final = "commit-waits-replica"
OFFSET_RACE: Final = "offset-race"
FINAL_WITH_OPEN_STMT: Final = "final-with-open-stmt"
CONTEXT_OF_NOW: Final = "context-of-now"
LOCKS_RELEASED_AT_PREPARE: Final = "locks-released-at-prepare"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        END_FLAG_ALWAYS_TRUE: "B01: a piece that is followed by others has the end flag",
        SEG_ID_NOT_RAISED: "B02: the next piece has the number of the one before",
        TRX_ID_NEW_PER_PIECE: "B03: the next piece has another transaction id",
        NO_ROLLBACK_MESSAGE: "B04: a rollback sends nothing, although pieces went out",
        ROLLBACK_BY_STATEMENT_SEG: "B05: a rollback is sent only if a statement of the current message was cut",
        ROLLBACK_OWN_ID: "B06: the rollback has a new transaction id",
        ROLLBACK_FOR_SINGLE: "B07: a rollback is sent though no piece went out, with the next transaction's id",
        STMT_ERROR_CLEARS_ALL: "B08: a failing statement takes the statements before it out of the message",
        EMPTY_FINAL_DROPPED: "B09: a last piece without statements is not sent",
        STMT_ERROR_KEEPS_PARTIAL: "B10: the rows of a failing statement stay in the message",
        STMT_ERROR_SEGMENTED_IGNORED: "B11: a failing statement of which pieces went out is not cancelled",
        SAVEPOINT_COPY: "B12: a rollback to a savepoint restores a copy of the message, whatever went out since",
        SAVEPOINT_IGNORED: "B13: a rollback to a savepoint leaves the message as it is",
        MID_PIECE_ERROR_IGNORED: "B14: the transaction goes on when a piece before the last was refused",
        LOG_ERROR_IS_SUCCESS: "B15: the log reports success although it wrote nothing",
        LOG_BEFORE_COMMIT_NO_RECOVERY: "B16: recovery rolls back what was prepared, whatever the log has",
        LOG_AFTER_COMMIT: "B17: the log is written after the commit",
        APPEND_AFTER_TORN: "B18: a restart goes on behind a torn record",
        COMMIT_ID_BEFORE_COMMIT: "B19: a transaction takes its commit id some time before it commits",
        DIRTY_LOG_READ: "B20: readers of the table log see transactions that have not committed",
        LOG_ORDER_NOT_COMMIT_ORDER: "B21: the log is written some time after the locks were released",
        POLL_UNORDERED: "B22: a poll lists transactions without an order, and the last one is the position",
        ROLLBACK_PIECE_ALONE: "B23: a rollback enters the table log without its other pieces",
        APPLY_INCOMPLETE: "B24: a replica applies what it has of a transaction",
        BUFFER_BY_SERVER_ONLY: "B25: a reader puts together the pieces of a server, whatever their transactions",
        BUFFER_BY_TRX_ONLY: "B26: the queue knows a transaction by its number alone, whoever its master",
        QUEUE_INSERT_NOT_ATOMIC: "B27: the pieces of a transaction enter the queue one by one",
        POSITION_IN_MEMORY: "B28: the position in the master's log is only in memory",
        APPLY_THEN_DELETE: "B29: an applied transaction leaves the queue later, and the position is not looked at",
        POSITION_BEFORE_APPLY: "B30: the position is on disk before the rows",
        DDL_SPLITS_APPLY: "B31: a schema change is committed before its position",
        STREAMING_WITHOUT_UNDO: "B32: a streaming applier commits pieces as they come",
        CRASH_LEAVES_OPEN: "B33: a restart leaves pieces open, and uses their transaction ids again",
        DUP_TRX_ID_RAW_SQL: "B34: a schema change has the id of the transaction before",
        TRX_ID_32BIT: "B37: a replica cuts transaction ids to 32 bits",
        READER_STUCK_ON_DELETED: "B38: a reader of the table log stops at an entry that was rolled back",
        OWN_CHANGES_BACK: "B39: a master takes back its own transactions",
        ORIGIN_OVERWRITTEN: "B40: a master logs the transactions of others as its own",
        IGNORE_ERRORS_PARTIAL: "B41: of a transaction with an error only the failing statement is left out",
        FILTER_DROPS_FINAL: "B42: the filter drops a last piece without admitted statements",
        TWO_STREAMS_PARTIAL: "B43: a stream has a piece that another one refused",
        NULL_AND_ESCAPE: "B44: NULL becomes an empty string, and quotes are lost",
        UPDATE_BY_FULL_ROW: "B45: an update looks for the row by its new key",
        NOOP_UPDATE_LOGGED: "B46: an update without effect is logged",
        THRESHOLD_ON_STATEMENT: "B47: the threshold counts the rows of one statement, not of the message",
        SYNC_SKIPPED: "B48: a commit does not wait for the disk",
        COMMIT_WAITS_REPLICA: "B49: a commit waits for the observer",
        OFFSET_RACE: "B50: the offset of a record is reserved some time before the record is written",
        FINAL_WITH_OPEN_STMT: "B51: a cut loses the rest of its statement",
        CONTEXT_OF_NOW: "B52: each piece takes the context of the session at that time",
        LOCKS_RELEASED_AT_PREPARE: "B53: locks are released when the transaction is prepared",
    }
)
