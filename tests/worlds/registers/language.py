"""Histories of registers in a line: "0:w1 1:r 0:ok 1:ok1" is a write of 1 by process 0, and a read by 1 that saw it.

`process:what`, where what is w1, r, c12 (a cas from 1 to 2), acquire or release, and then ok (of a read: ok1, or ok-
for nil), fail or info. With a key: `process:a.w1`.
"""

from harness.core.record import Complete, Evidence, Invoke, Json, Outcome

WORDS = {"w": "write", "r": "read", "c": "cas"}
ENDS: dict[str, Outcome] = {"ok": "ok", "fail": "fail", "info": "info"}
MS = 1_000_000


def register_history(text: str) -> list[Evidence]:
    """The records of such a line; each word is a millisecond after the one before."""
    evidence: list[Evidence] = []
    opened: dict[int, Invoke] = {}
    for place, word in enumerate(text.split(), start=1):
        number, what = word.split(":")
        process = int(number)
        end = next((end for end in ENDS if what.startswith(end)), None)
        if end is None:
            invoke = Invoke(
                sum(isinstance(e, Invoke) for e in evidence), place * MS, place * MS, process, *_asked(what)
            )
            opened[process] = invoke
            evidence.append(invoke)
        else:
            invoke = opened.pop(process)
            evidence.append(Complete(invoke.index, place * MS, ENDS[end], _answered(invoke, what.removeprefix(end))))
    return evidence


def _asked(what: str) -> tuple[str, Json]:
    key, _, rest = what.rpartition(".")
    f = WORDS.get(rest[0], rest) if rest not in {"acquire", "release"} else rest
    digits: list[Json] = [int(each) for each in rest[1:] if each.isdecimal()]
    value: Json = digits if f == "cas" else digits[0] if digits else None
    return f, [key, value] if key else value


def _answered(invoke: Invoke, seen: str) -> Json:
    if invoke.f != "read" or not seen:
        return invoke.value
    value = None if seen == "-" else int(seen)
    return [invoke.value[0], value] if isinstance(invoke.value, list) else value
