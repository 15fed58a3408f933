"""All stream rules: every `Rule` that a module of the package `checkers.streams.rules` declares."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from checkers.streams import rules
from checkers.streams.rule import Need, Rule


def _found() -> Iterator[Rule]:
    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Rule):
                yield value


def _by_name() -> Mapping[str, Rule]:
    by_name: dict[str, Rule] = {}
    for rule in sorted(_found(), key=lambda rule: (rule.rank, rule.id, rule.name)):
        if by_name.setdefault(rule.name, rule) is not rule:
            raise AssertionError(f"two stream rules are called {rule.name}")
    return MappingProxyType(by_name)


RULES: Final[Mapping[str, Rule]] = _by_name()  # By name, in the order of findings.


def names_that_need(need: Need) -> tuple[str, ...]:
    """The names of the rules with that need, in the order of findings."""
    return tuple(name for name, rule in RULES.items() if need in rule.needs)
