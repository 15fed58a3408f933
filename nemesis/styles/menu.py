"""Strikes chosen for variety: of several drawn ones the one whose kind was used least so far.

So a few runs have strikes of all kinds, and soon all pairs of kinds, where independent draws would repeat the common
ones. Sources: Chen, Leung and Mak, "Adaptive random testing", ASIAN 2004, for a fixed number of candidates for each
choice; Kuhn, Wallace and Gallo, "Software fault interactions", TSE 2004, for pairs.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from harness.core.draw import Stream
from nemesis.fault import Package
from nemesis.plan import Step
from nemesis.topology import Strike, Topology, ends

OFFERS = 8  # The number of candidates for each choice.
AT_POINT = " at a failpoint"
MANY = 5  # The number of strikes at failpoints for each strike of another form.


class Menu:
    """The strikes of a hunt, counted by kind."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._used: Counter[str] = Counter()
        self._together: Counter[tuple[str, str]] = Counter()

    def strike(
        self, packages: Sequence[Package], stream: Stream, beside: Strike | Step | None = None
    ) -> tuple[Package, Strike] | None:
        """A strike of one of the packages; None if none of them can be drawn here.

        It will be in force together with `beside`, if that is given.
        """
        other = None if beside is None else self.manner(beside)[1]
        offers = []
        for _ in range(OFFERS):
            package = stream.choice(packages)
            strike = package.draw(self._topology, stream)
            if strike is not None and strike.targets:
                offers.append((package, self._aimed(strike), self.manner(strike)))
        if not offers:
            return None
        package, strike, (form, manner) = min(offers, key=lambda offer: self._use(offer[2], other))
        self._used.update((form, manner))
        if other is not None:
            self._together[_pair(manner, other)] += 1
        return package, strike

    def _aimed(self, strike: Strike) -> Strike:
        """The strike, at a failpoint on no node that never reaches it: some plans wait for one of these nodes alone."""
        if "point" not in strike.args:
            return strike
        nodes = self._topology.reaching(str(strike.args["point"]))
        targets = tuple(node for node in strike.targets if node in nodes)
        return msgspec.structs.replace(strike, targets=targets or nodes)

    def _use(self, how: tuple[str, str], other: str | None) -> tuple[int, int, int]:
        """A sort key of three counts: uses of the kind together with the other one, of its form, and of the kind.

        There are many failpoints, and often many nodes of a role, so those forms may be used more often.
        """
        form, manner = how
        together = 0 if other is None else self._together[_pair(manner, other)]
        return together, self._used[form] // self._shares(form), self._used[manner]

    def _shares(self, form: str) -> int:
        """The weight of a form: for a strike of single nodes the size of their role, at failpoints MANY, else 1."""
        return MANY if AT_POINT in form else max(1, len(self._topology.of_role(form.partition(" ")[2])))

    def manner(self, strike: Strike | Step) -> tuple[str, str]:
        """The kind of a strike as protocols may distinguish it: first roughly, then in full.

        Nodes of a role are all alike.

        At a failpoint the full kind has the failpoint. For nodes, it has their number by role. For links inside the
        servers' largest role, how many others each node no longer hears, and is no longer heard by; for other links,
        the roles at their ends, and whether all of these links are struck. Delays and rates do not matter.
        """
        point = strike.args.get("point")
        if point is not None:
            return strike.fault + AT_POINT, f"{strike.fault} at {point}"
        form, share = self._form(strike.fault, strike.targets)
        return form, form + share

    def _form(self, fault: str, targets: tuple[str, ...]) -> tuple[str, str]:
        roles = self._topology.role_of
        if not any(">" in target for target in targets):
            return f"{fault} {' '.join(sorted(roles[target] for target in targets))}", ""
        members = self._topology.largest_role()
        inside = [ends(link) for link in targets if set(ends(link)) <= set(members)]
        if inside:
            heard, hears = Counter(source for source, _ in inside), Counter(target for _, target in inside)
            return f"{fault} {sorted((heard[node], hears[node]) for node in members)}", ""
        parted = Counter((roles[ends(link)[0]], roles[ends(link)[1]]) for link in targets)
        share = ", ".join(self._share(source, target, n) for (source, target), n in sorted(parted.items()))
        return f"{fault} {' '.join(sorted(f'{source}>{target}' for source, target in parted))}", f": {share}"

    def _share(self, source: str, target: str, count: int) -> str:
        """ "all", "one" or "some": the part of the links between two roles that `count` links are."""
        whole = len(self._topology.of_role(source)) * len(self._topology.of_role(target))
        return "all" if count == whole else "one" if count == 1 else "some"


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
