"""The fields of a stream's contract and of the bounds of a run, as text: for pages that people read.

`harness/core/promises.py` defines the fields, this module explains them. Tests keep the two in agreement.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec


class Words(msgspec.Struct, frozen=True):
    """The subject of a field, and the meaning of each of its values. `is_checked`: some check uses it."""

    about: str
    values: Mapping[str, str] = {}
    is_checked: bool = True


def _yes_or_no(yes: str, no: str) -> Mapping[str, str]:
    return {"yes": yes, "no": no}


CONTRACT: Final[Mapping[str, Words]] = MappingProxyType(
    {
        "closed": Words(
            "Does watermark w speak of the events exactly at w?",
            {
                "<": "No: w promises what lies below it, and an event at w may still come.",
                "<=": "Yes: an event at w that comes after it is late.",
            },
        ),
        "cut": Words(
            "Which events make up the state at a watermark?",
            {
                "delivery": "All events delivered before it, at any position.",
                "position": "The events whose position it closes; early events above it are left out.",
                "unknown": "The system does not say.",
            },
        ),
        "position": Words(
            "What is the number by which events and watermarks are compared?",
            {
                "commit-timestamp": "The time of the commit, as the system gives it.",
                "revision": "A number that rises with each change.",
                "offset": "A place in a log.",
                "lsn": "A place in the database's own write-ahead log.",
                "epoch": "The epoch, which many transactions share.",
            },
        ),
        "order_key": Words(
            "Among which events is delivery in order of position?",
            {
                "none": "No order is promised.",
                "key": "Events of one key.",
                "partition": "Events of one partition.",
                "global": "All of them.",
            },
        ),
        "resume": Words(
            "Where does a session begin that is opened at position p?",
            {"after": "Behind p.", "at": "With p itself."},
        ),
        "delivery": Words(
            "How often does an event come?",
            {
                "exactly-once": "Once; a second time only if the session requested that by where it opened.",
                "at-least-once": "Once or more; the field replay defines when an event may come again.",
                "at-most-once": "Once or never; a second time only as with exactly-once.",
            },
        ),
        "replay": Words(
            "Where delivery is at least once: when may an event come again?",
            {
                "resume": "In a later session only; inside of one session a repetition is a finding.",
                "session": "At any time, even within a session.",
            },
        ),
        "atomic_unit": Words(
            "Which unit must a watermark keep whole?",
            {
                "none": "No unit: each event is independent.",
                "response": "The events of one answer of the server.",
                "batch": "The events of one batch.",
                "transaction": "The events of one transaction.",
                "epoch": "The events of one epoch.",
            },
        ),
        "unit_layout": Words(
            "How are the rows of units arranged in a partition?",
            {
                "mixed": "In any way: rows of several units may alternate.",
                "together": "The rows of a unit follow one another.",
                "one-order": "So, and two units come in the same order in all partitions.",
            },
        ),
        "unit_scope": Words(
            "How far does a unit reach?",
            {
                "partition": "It is whole in each partition separately.",
                "global": "It is whole over all partitions together.",
            },
        ),
        "unit_rows": Words(
            "Which versions are sent of a key that one unit writes several times?",
            {"final": "One event, with the last value.", "each": "One event for each write."},
        ),
        "versions": Words(
            "Which versions of a key are delivered?",
            {
                "every": "All of them.",
                "latest-per-epoch": "At least the newest version of each epoch; replaced versions may be missing.",
                "latest": "At least the newest; any that a newer one has replaced may be missing.",
            },
        ),
        "is_position_unique": Words(
            "Does a position belong to one unit only?",
            _yes_or_no("Yes, to one.", "No, several units may share one."),
        ),
        "is_position_global": Words(
            "Do positions of different partitions compare?",
            _yes_or_no("Yes, they are of one order.", "No, each partition counts separately."),
        ),
        "follows_clock": Words(
            "Do positions follow a clock?",
            _yes_or_no("Yes, so they rise even without writes.", "No, they follow the writes."),
        ),
        "identity": Words(
            "How does a consumer recognise a repeated event?",
            {
                "position+key": "By position and key.",
                "position+key+ordinal": "By position, key and number in the unit.",
                "position+key+value": "By position, key and value.",
            },
        ),
        "wm_scope": Words(
            "How far does a watermark's promise reach, and where may it not go back?",
            {
                "session": "In its session; the next one begins anew.",
                "subscriber": "In all sessions of its subscriber.",
                "partition": "In its partition.",
                "global": "Everywhere.",
            },
        ),
        "wm_idle": Words(
            "Does the watermark advance without writes?",
            {"moves": "It moves on.", "rests": "It rests, at what was written last."},
        ),
        "has_gap_marker": Words(
            "Does the stream mark a loss?",
            _yes_or_no("Yes; a loss that no marker precedes is a finding.", "No, it has no marker."),
        ),
        "has_noop_events": Words(
            "Is there an event for a write that changes nothing?",
            _yes_or_no(
                "Yes, there is one for every write.",
                "No; an event is owed only for a value that nobody else wrote to that key.",
            ),
        ),
        "system_events": Words(
            "Which events come without a client's write, such as expiry or triggers?", {"none": "There are none."}
        ),
        "realtime": Words(
            "Do positions obey real time?",
            {
                "none": "That is not promised.",
                "follows": "A write that began after another had ended has the higher position.",
                "reads": "So they do; and later operations see what a subscriber has seen.",
            },
        ),
        "clock_error_ns": Words(
            "Where positions follow a clock in nanoseconds: how far may it be ahead of the harness's?",
            {"not promised": "The two clocks do not compare."},
        ),
        "is_whole_least": Words(
            "Does the consumer make a watermark of the whole stream from its session's watermarks by partition?",
            _yes_or_no("Yes, it is never above the least of them.", "No, or that is not declared."),
        ),
        "epochs": Words(
            "Which epoch does an event carry?",
            {"units": "The epoch of its unit.", "owners": "The epoch of the owner that appended it to the log."},
        ),
        "owners": Words(
            "Who owns a log?",
            {
                "unknown": "Nobody says so.",
                "nodes": "The node that answered a write to it, in the epoch which that names: one in each epoch.",
            },
        ),
        "backfill": Words(
            "Which rows does a session's first snapshot contain?",
            {"partial": "Some keys; others may come later.", "whole": "Every key that was there at its position."},
        ),
        "events_at_position": Words(
            "How many events can have one position?",
            {"one": "One: every reader gets the same event at that position.", "many": "As many as there are."},
        ),
        "acknowledged": Words(
            "What do checkpoints, and the positions with which sessions open, say of a subscriber's own state?",
            {
                "unknown": "Nothing.",
                "held": "A checkpoint was acknowledged upstream, and a session opens with what is durable: no crash "
                "may lose what was acknowledged.",
            },
        ),
        "resumes_behind_checkpoint": Words(
            "Does a session go on behind its subscriber's last checkpoint, as the source has answered that?",
            _yes_or_no(
                "Yes, unless it opens with a lower position: nothing up to the checkpoint comes again.",
                "No, or that is not declared.",
            ),
        ),
        "positions": Words(
            "Does every position have an event?",
            {
                "sparse": "No, or that is not declared: a hole proves nothing.",
                "dense": "Yes, every integer: a session of the whole stream, or of a partition, skips none.",
            },
        ),
        "sessions": Words(
            "Does a session begin where the session before it ended?",
            {
                "apart": "Not always: what lies between them need not come. A note counts the writes.",
                "joined": "Yes, or below: together the sessions of a subscriber have no hole.",
            },
        ),
        "partitions": Words("How many partitions are there? A key of which nothing came is on one of them."),
        "tail": Words(
            "Had everything come to rest when the recording ended?",
            {
                "open": "Not declared: only a run that waited for it knows.",
                "settled": "Yes; events that had not arrived by then are lost.",
            },
        ),
        "tombstones": Words(
            "Does a tombstone follow each deletion?",
            {
                "unknown": "Not declared: they may be switched on or off once.",
                "each": "Yes, directly, in the partition of the deletion.",
            },
        ),
        "consumers": Words(
            "To how many subscribers does an event come?",
            {"each": "To each that covers it.", "group": "To one of them: they share the stream out among themselves."},
        ),
    }
)

BOUNDS: Final[Mapping[str, Words]] = MappingProxyType(
    {
        "groups": Words(
            "Nodes that hold the same data; of each group one must be alive. "
            "Without groups a key that no node shows is not judged."
        ),
        "saved_bits": Words("Positions that are equal above this number of bits become durable together."),
        "loss_ns": Words("A write that was acknowledged this long before a failure of the whole cluster survives it."),
        "records": Words("A node keeps at most this number of epochs for its subscribers."),
        "disconnect_ns": Words("A subscriber without an acknowledgement for this long is disconnected."),
        "stall_ns": Words("The longest that watermarks rest outside of faults and their grace."),
        "blocked_ns": Words("The longest that a commit waits for an epoch outside of faults and their grace."),
        "behind_ns": Words(
            "The longest that an answered write stays above the watermark, once there is one, outside of faults and "
            "their grace."
        ),
        "spurious": Words("Reasons for which an operation may fail only where a fault explains it."),
        "spurious_keys": Words(
            "Only operations that append to at least this number of keys can fail for such a reason."
        ),
        "grace_ns": Words("The time after a fault's end that the fault excuses: detection, take-over, restart."),
        "views": Words("Views that are computed again from their inputs: the [[view]] tables of a promise file."),
        "total": Words("The sum of a bank's accounts. Default: the sum in its first read."),
    }
)
