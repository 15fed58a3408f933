"""What the check counts, pinned for one history by hand: sizes, edges, witnesses, and what it knows of versions."""

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import to_transactions
from checkers.transactions.check import check_sources
from tests.worlds.small_language import sequential

HISTORY = sequential(
    "ax1 ax2",
    "!ax3",
    "~ax4 ay1",
    "rx124 ry1 rx124",
    "rx124 ax5 rx1245",
    "ry? ry1 ay2",
    "ry12 ay3",
    "~ry12",
    "!ry12",
    "rz",
    "az1",
)


def test_sizes_edges_and_versions_are_counted() -> None:
    judgement = check_sources([to_transactions(HISTORY)], LocalEngine(1))
    assert not judgement.findings
    assert not judgement.unknown
    facts = judgement.facts
    wanted = {
        "ok": 7,
        "fail": 2,
        "info": 2,
        "micro-operations": 20,
        "elements-read": 21,  # Also of those who failed and said what they saw.
        "elements-without-writer": 0,
        "keys": 3,
    }
    sizes = facts["sizes"]
    assert isinstance(sizes, dict)
    assert {name: sizes[name] for name in wanted} == wanted
    # ww: x 2-4-5, y 1-2-3. Each read counts: wr of x 4 in three, y 1 in two, 2 in one; rw to x 5 from two, to y 2 from
    # one, and two readers of what was newest, of y and of z.
    assert facts["edges"] == {"ww": 4, "wr": 6, "rw": 5}
    assert facts["version_order_known_permille"] == 1000 * 4 // 6


def test_witnesses_are_what_could_have_shown_the_anomaly() -> None:
    witnesses = check_sources([to_transactions(HISTORY)], LocalEngine(1)).witnesses
    wanted = {
        "internal": 2,  # The second reads of x in one transaction; "ry?" shows nothing.
        "future-read": 3,
        "duplicate-elements": 5,
        "incompatible-order": 6,  # One of them for the transaction that appended twice.
        "G1a": 4,
        "G1b": 4,
        "dirty-update": 3,
        "lost-update": 3,
        "G0": 4,
        "G1c": 11,
        "G-single": 5,
    }
    assert {name: witnesses[name] for name in wanted} == wanted


def test_registers_are_counted_as_keys_and_by_themselves() -> None:
    history = sequential("wx1", "rx=1 wx2 wx3", "!wy4", "rx=3 ry=", "az1 rz1")
    sizes = check_sources([to_transactions(history)], LocalEngine(1)).facts["sizes"]
    assert isinstance(sizes, dict)
    wanted = {"micro-operations": 9, "keys": 3, "registers": 2, "register-writes": 4, "registers-read": 3}
    assert {name: sizes[name] for name in wanted} == wanted
