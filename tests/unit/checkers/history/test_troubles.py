"""Violations become findings: one for each anomaly and group, in the declared order."""

from checkers.history.troubles import Trouble, findings, judgement

ANOMALIES = ("late", "lost")


def test_violations_of_one_anomaly_are_one_finding_with_the_first_and_their_number() -> None:
    troubles = [
        Trouble("lost", "x is lost.", ("x",), ops=(7, 2, 7)),
        Trouble("late", "a is late.", ("a",), events=(9, 3)),
        Trouble("lost", "y is lost.", ("y",), ops=(1,), count=3),
    ]
    late, lost = findings("check", ANOMALIES, troubles)
    assert (late.anomaly, late.sentence, late.count, late.events) == ("late", "a is late.", 1, (9, 3))
    assert (lost.anomaly, lost.sentence, lost.count, lost.ops) == ("lost", "x is lost.", 4, (2, 7))
    assert {late.checker, lost.checker} == {"check"}


def test_groups_are_apart_and_come_in_the_order_of_their_first() -> None:
    troubles = [Trouble("lost", who, (who,), group=who) for who in ("s2", "s1", "s2")]
    assert [(one.sentence, one.count) for one in findings("check", ANOMALIES, troubles)] == [("s2", 2), ("s1", 1)]


def test_a_fingerprint_follows_from_anomaly_scope_and_facts_alone() -> None:
    def fingerprint(trouble: Trouble, checker: str = "check", scope: tuple[object, ...] | None = None) -> str:
        (finding,) = findings(checker, ANOMALIES, [trouble], scope=scope)
        return finding.fingerprint

    one, other = Trouble("lost", "One.", ("x",)), Trouble("lost", "Two.", ("x",), ops=(1,), group=3, count=2)
    assert fingerprint(one) == fingerprint(other) == fingerprint(one, "else", ("check",))
    others = (fingerprint(one, "else"), fingerprint(one, scope=()), fingerprint(Trouble("late", "One.", ("x",))))
    assert len({fingerprint(one), fingerprint(Trouble("lost", "One.", ("y",))), *others}) == 5


def test_what_was_found_is_not_unknown_and_what_was_not_witnessed_has_none() -> None:
    unknown = dict.fromkeys(ANOMALIES, "too large")
    result = judgement("check", ANOMALIES, [Trouble("lost", "x.", ())], {"lost": 2}, unknown=unknown, facts={"n": 1})
    assert (result.unknown, result.witnesses) == ({"late": "too large"}, {"late": 0, "lost": 2})
    assert (result.checker, result.facts, len(result.findings)) == ("check", {"n": 1}, 1)
