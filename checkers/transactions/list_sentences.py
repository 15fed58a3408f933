"""Sentences about lists: for the steps of cycles, and for anomalies without a cycle."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from checkers.graph.classes import MISSES, WRITES
from checkers.graph.edges import REALTIME, RW, WR, WW
from checkers.graph.reasons import Reason
from checkers.graph.sightings import NONE, Example
from checkers.history.names import Names, first_difference, shown_list
from checkers.history.transactions import Append, Operation, Read
from checkers.transactions.evidence import Evidence, appends, own_missed, reads
from checkers.words.transactional import TRANSACTIONAL


class ListOrder:
    """The order of the elements of each list, by its longest read."""

    def __init__(self, parts: Iterable[Evidence], name: Names) -> None:
        self._name = name
        longest: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        for part in parts:
            for key, op, elements in part.longest:
                candidate = (-len(elements), op, elements)
                longest[key] = min(longest.get(key, candidate), candidate)
        # The first place of each element counts.
        self._elements = {key: list(dict.fromkeys(elements)) for key, (_, _, elements) in longest.items()}
        self.reader: Mapping[int, int] = {key: op for key, (_, op, _) in longest.items()}  # Who read that order.

    def elements(self, key: int) -> list[int]:
        """All elements of a list; empty if no read shows any."""
        return self._elements.get(key, [])

    def before(self, append: Append) -> list[int]:
        """The elements before that of the append in the order of its key."""
        order = self.elements(append.key)
        return order[: order.index(append.element)] if append.element in order else order

    def places(self, append: Append) -> bool:
        """True if the append has a place in the order of its key."""
        return append.element in self.elements(append.key)

    def reason(self, sentence: str, append: Append) -> Reason:
        """The sentence, with the reader whose read gives the append's place in the order of its key."""
        reader = self.reader.get(append.key)
        if reader is not None and self.places(append):
            return Reason(f"{sentence} (as T{reader} saw)", (reader,))
        unseen = f"{sentence} (the longest read shows no {self._name(append.element)}, so it is newer)"
        return Reason(unseen, () if reader is None else (reader,))


class Neighbours:
    """Reads and appends of lists as a witness, of elements that are next to each other in the order of their list.

    If not `is_next`, any elements will do, such as those after one of a failed or unknown operation.
    """

    def __init__(self, order: ListOrder, name: Names, *, is_next: bool = True) -> None:
        self._order, self._name, self._is_next = order, name, is_next

    def why(self, earlier: Operation, later: Operation, kind: int) -> Reason | None:
        """The reason why one operation precedes the other, if lists show it."""
        return next(self._reasons(earlier, later, kind), None)

    def _reasons(self, before: Operation, after: Operation, kind: int) -> Iterator[Reason]:
        if kind & (WRITES[REALTIME] if self._is_next else WW):
            yield from self._ww(before, after)
        if kind & WR:
            yield from self._wr(before, after)
        if kind & (MISSES[REALTIME] if self._is_next else RW):
            yield from self._rw(before, after)

    def _ww(self, before: Operation, after: Operation) -> Iterator[Reason]:
        for append in appends(after):
            earlier = self._order.before(append)
            for element in reversed(earlier[-1:] if self._is_next else earlier):
                if Append(append.key, element) in before.mops:
                    when = "right after" if self._is_next and self._order.places(append) else "after"
                    yield self._order.reason(
                        f"T{after.index} appended {self._name(append.element)} to {self._name.key(append.key)} "
                        f"{when} T{before.index} appended {self._name(element)}",
                        append,
                    )

    def _wr(self, before: Operation, after: Operation) -> Iterator[Reason]:
        for read in reads(after):
            elements = read.elements or ()
            # Before what it had appended itself, a list shows what that extended.
            others = [each for each in elements if Append(read.key, each) not in after.mops]
            for element in reversed(others[-1:] if self._is_next else others):
                if Append(read.key, element) in before.mops:
                    whole = shown_list([*map(self._name, elements)], elements.index(element))
                    saw = f"{self._name.key(read.key)} as {whole}"
                    yield Reason(f"T{after.index} read {saw}, and T{before.index} appended {self._name(element)}")

    def _rw(self, before: Operation, after: Operation) -> Iterator[Reason]:
        for append in appends(after):
            versions = [None, *self._order.before(append)]
            for read in reads(before):
                last = read.elements[-1] if read.elements else None
                if read.key == append.key and last in (versions[-1:] if self._is_next else versions):
                    saw = f"{self._name.key(read.key)} as {shown_list([*map(self._name, read.elements or ())])}"
                    yield self._order.reason(
                        f"T{before.index} read {saw}, without {self._name(append.element)}, "
                        f"which T{after.index} appended {'next' if self._is_next else 'later'}",
                        append,
                    )


class ListSentences:
    """The sentences about anomalies of lists without a cycle.

    See checkers/transactions/list_anomalies.py for what each example holds.
    """

    def __init__(self, order: ListOrder, operations: Mapping[int, Operation], name: Names) -> None:
        self._order, self._operations, self._name = order, operations, name

    def sighting(self, anomaly: str, example: Example, operation: Operation) -> Reason:
        """The sentence about an anomaly, with further operations that it mentions."""
        sentence = self._sentence(anomaly, example, operation)
        return Reason(sentence, (self._order.reader[example.key],) if anomaly == "dirty-update" else ())

    def _sentence(self, anomaly: str, example: Example, operation: Operation) -> str:
        op, other = f"T{example.op}", f"T{example.other}"
        key = self._name.key(example.key)
        element = self._name(example.element) if example.element != NONE else "nothing"
        match anomaly:
            case "internal":
                return self._contradiction(operation, example.key)
            case "missed-own-write":
                read, last = own_missed(operation, example.key)
                return self._against(operation, read, None, f"it had itself appended {self._name(last)} last")
            case "future-read":
                return f"{op} read {element} in {key} before it appended it."
            case "duplicate-elements":
                return f"{op} read {key} with {element} in it twice: {self._seen(example)}."
            case "incompatible-order" if example.element != NONE:
                order = self._list(self._order.elements(example.key))
                return f"{op} read {key} as {order}, but {other} had appended more to it before it appended {element}."
            case "incompatible-order":
                return self._disagreement(example)
            case "G1a":
                return f"{op} read {key} as {self._seen(example)}, but {other}, which appended {element}, failed."
            case "G1b":
                return (
                    f"{op} read {key} as {self._seen(example)}, but {other}, which appended {element}, "
                    f"appended more to {key} after that: an intermediate state."
                )
            case "garbage-read":
                return f"{op} read {key} as {self._seen(example)}, but nobody appended {element}."
            case "dirty-update":
                saw = f"as T{self._order.reader[example.key]} saw"
                return f"{op} committed {element} in {key} on top of what {other} appended, which failed ({saw})."
            case "lost-update":
                return (
                    f"{op} and {other} both read {key} as {self._seen(example)}, and both appended to it: "
                    "one did not see the other's update."
                )
            case _:
                return f"{op}: {TRANSACTIONAL[anomaly].meaning}"

    def _seen(self, example: Example) -> str:
        """The list that the operation read of the example's key: the first read with the example's element counts."""
        own = [read for read in reads(self._operations[example.op]) if read.key == example.key]
        holding = [read for read in own if read.elements and example.element in read.elements]
        elements = (holding or own)[0].elements or ()
        places = [at for at, element in enumerate(elements) if element == example.element]
        return self._list(elements, places[-1] if places else None)

    def _disagreement(self, example: Example) -> str:
        """Two reads of a key, neither a prefix of the other, and the place where they differ."""
        key = example.key
        ours, theirs = (
            [read.elements or () for read in reads(self._operations[op]) if read.key == key]
            for op in (example.op, example.other)
        )
        longest = max(theirs, key=len)
        odd = next(read for read in ours if read != longest[: len(read)])
        place = next(at for at, (one, other) in enumerate(zip(odd, longest, strict=False)) if one != other)
        return (
            f"T{example.op} read {self._name.key(key)} as {self._list(odd, place)}, and T{example.other} read it as "
            f"{self._list(longest, place)}: neither is the beginning of the other, as element {place + 1} is "
            f"{self._name(odd[place])} in the one and {self._name(longest[place])} in the other."
        )

    def _contradiction(self, operation: Operation, key: int) -> str:
        """The sentence about a read that contradicts what its transaction had read and appended before."""
        known: tuple[int, ...] | None = None  # Its last read, and
        appended: tuple[int, ...] = ()  # its appends since.
        for mop in operation.mops:
            match mop:
                case Append() if mop.key == key:
                    appended += (mop.element,)
                case Read(elements=tuple() as elements) if mop.key == key:
                    expected = (known or ()) + appended
                    if known is not None and elements != expected:
                        at = first_difference(elements, expected)
                        return self._against(operation, mop, at, f"it knew it as {self._list(expected, at)}")
                    if elements[max(0, len(elements) - len(appended)) :] != appended:
                        return self._against(operation, mop, None, f"it had itself appended {self._list(appended)}")
                    known, appended = elements, ()
        return f"T{operation.index}: {TRANSACTIONAL['internal'].meaning}"

    def _against(self, operation: Operation, read: Read, at: int | None, knew: str) -> str:
        shown = self._list(read.elements or (), at)
        return f"T{operation.index} read {self._name.key(read.key)} as {shown}, but {knew}."

    def _list(self, elements: Sequence[int], at: int | None = None) -> str:
        return shown_list([*map(self._name, elements)], at)
