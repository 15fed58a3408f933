"""Mutants that no test can kill, and why: by file, and by name as tests/mutation/mutants.py prints it."""

from typing import Final

COST: Final = "only the cost differs"
WIDER: Final = "windows may be wider, and are never narrower: more is searched, and the same is found"
ARGUED: Final[dict[str, dict[str, str]]] = {
    "checkers/columns/runs.py": {
        "codes: > to >=": COST,
        "codes: + bound up 1": COST,
        "codes: + bound up 2": COST,
        "codes: + bound up 4": "nobody asks for the place behind the last",
        "common_prefix: right to left 1": COST,
        "groups: <= to <": COST,
    },
    "checkers/engine/wire.py": {
        "lives: - bound up": "a number that is no length, as well",
        "narrow: False to True": COST,
    },
    "checkers/graph/certificate.py": {
        "certify: + bound up 1": WIDER,
        "_advance: + bound up": WIDER,
        "certify: + bound up 2": WIDER,
        "_advance: branch dropped": COST,
        "_backward: + to - 1": (
            "the implicit edges that real time implies are made, and then left out like any other's: "
            "only the cost differs"
        ),
        "_advance: > to >=": ("who is late by nothing moves nowhere, and is looked at again: only the cost differs"),
        "certify: right to left": "no suspect stands where a window stops",
        "_backward: right to left": "who ended as a reader began makes the same window as an edge does",
        "route: + bound up 6": COST,
    },
    "checkers/graph/edges.py": {
        "beside: + bound up": "a number between two groups is nobody's",
    },
    "checkers/graph/search.py": {
        "starts: - to +": ("others are tried first: the same classes are found, and the example of one may be longer"),
        "seek: branch dropped": COST,
    },
    "checkers/streams/rules/sessions/lost_acknowledged.py": {
        "_below: > to >=": (
            "between an opening and an acknowledgement of its own position lies no write: only the cost differs"
        ),
        "_below: < to <=": (
            "between an opening and an acknowledgement of its own position lies no write: only the cost differs"
        ),
        "_below: & to |": (
            "what opens a session is its first event, so that acknowledgements before it are all of others"
        ),
        "_is_witness: < to <= 3": "a crash and an acknowledgement are two records of the journal",
    },
    "checkers/streams/rules/logs/real_time_order.py": {
        "_processes: False to True": "how many threads read a file, changes nothing of what they read",
    },
    "checkers/streams/rules/sessions/hand_over_hole.py": {
        "hand_over_holes: branch dropped": (
            "without rows of snapshots and holes behind them there is nothing to put together, and the same comes of it"
        ),
        "_lacking: + bound up": "there is room for one part more, of nobody",
        "_lacking: < to <= 1": "a watermark is no row of a snapshot",
        "_lacking: < to <= 2": "a watermark is no row",
    },
    "checkers/streams/rules/sessions/resume_hole.py": {
        "_has_later_gap: < to <=": "a gap is no row, and only rows are asked about",
        "_has_later_gap: + bound up": "there is room for one session more, which nobody has",
    },
    "checkers/transactions/check.py": {
        "_cycles: branch dropped": COST,
        "_findings: branch dropped": COST,
        "_reported: <= to <": "the cycle that it restates is of a class that rules out more",
    },
    "checkers/transactions/list_anomalies.py": {
        "_lost_updates: + bound up 1": "there is room for one length more, which no read has",
        "_lost_updates: + bound up 2": "a number between is no version's",
        "_disordered: + bound up": "there is room for one append more, which nobody asks for",
        "_lost_updates: + to - 1": (
            "one number for each version as well, and below those of what was seen in no order"
        ),
        "_dirty_updates: + bound dropped": (
            "where an ok one stands no failed one does, so that the next failed one is the same"
        ),
        "_odd_versions: + bound up 1": "nobody asks for the bound behind the last",
    },
    "checkers/transactions/list_rows.py": {
        "_roles: - bound dropped": (
            "groups are numbered from 1: they are at most half as many as rows, so that there is room"
        ),
        "_repeated: + to -": (
            "one number for each transaction and key as well, and whoever compares two of them asks "
            "only if they are equal"
        ),
        "_roles: - bound up": "the first group is kept behind all others, where there is room, and found there",
        "_foreseen: - bound dropped": "groups are numbered from 1, as above",
        "_repeated: True to False": (
            "the last micro-operation of all, alone with its key, is looked at like a group, and "
            "nothing follows from one"
        ),
        "_foreseen: < to <= 1": "the last append of a group is no read, so no read has its place",
        "_foreseen: < to <= 2": "a read and an append are never at one place",
    },
    "checkers/transactions/list_versions.py": {
        "__init__: <= to <": COST,
        "__init__: + bound up 3": COST,
        "__init__: + bound up 4": COST,
        "of: branch dropped 2": COST,
        "_find_order: + bound up 2": "nobody asks for the key behind the last",
        "_find_writers: + bound up": "nobody asks for the slot between",
        "_find_order: + bound up 1": "nobody asks for the slot between",
    },
    "checkers/transactions/registers/edges.py": {
        "_implicit: > to >=": COST,
        "_implicit: < to <=": (
            "of one register, writers of what comes after nothing stand in the tail twice: only the cost differs"
        ),
    },
    "checkers/transactions/registers/order.py": {
        "union: branch dropped": COST,
        "by_process: + to -": "one number for each process and register as well",
        "union: or to and": COST,
        "by_real_time: >= to > 1": "the first in the order of ends is the next of nobody",
        "by_real_time: >= to > 3": "the first in the order of ends is the next of nobody",
        "_next: >= to >": ("more pairs are kept between near ones, and the same are reached: only the cost differs"),
        "by_real_time: >= to > 2": (
            "before the first operation began nobody had ended, so what only it met comes after nothing"
        ),
    },
    "checkers/transactions/uncertified.py": {
        "windows_of: + bound up 2": COST,
        "windows_of: + bound up 1": (
            "threads do not ask how many slices there are; Spark, whose tests are not among those of a "
            "mutant, fails with 0"
        ),
    },
    "checkers/watermarks/disputes.py": {
        "_contains: > to >=": "a watermark is no row",
        "_lacks: < to <=": "a watermark is no row",
        "_lacks: > to >=": "a watermark is no row",
        "_is_next: < to <= 2": "a version that is missing is not held, and no other has its rank",
        "_lacks: >= to >": (
            "whoever asks has found that the mark contains a row, or is one node with another: it is of "
            "the whole stream"
        ),
        "_start: <= to <": "neither a watermark nor a row is a marker",
        "answer: & to |": "events of other keys are looked at as well, and tell nothing: only the cost differs",
    },
}
