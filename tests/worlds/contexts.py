"""Contexts of checks, with what a test declares, and their judgements."""

from pathlib import Path

from checkers.catalogue import CHECKS
from checkers.engine.datasets import Engine, LocalEngine
from checkers.engine.protocol import Context
from checkers.transactions.check import LOCKED
from checkers.words import models
from clusters.ndb import checks as ndb
from harness.core.promises import Bounds, Promise, StreamContract
from harness.core.verdict import Judgement
from harness.judging.checks import chosen, judgement_of
from harness.judging.generations import generations
from nemesis.registry import EXCUSES
from tests.worlds.epoch_histories import BITS

ENGINE = LocalEngine(2)


WEAK = Promise(id="1", text="", source="", forbids=("read-committed",), check="serializability")


STRICT = Promise(id="3", text="", source="", forbids=("strict-serializable",), check=LOCKED)


REST = Promise(id="2", text="", source="", forbids=("stale-acknowledged", "epoch-shape", "cut-not-closed"))


EPOCHS = (WEAK, STRICT, REST)


def context(
    *promises: Promise, bits: int | None = BITS, contract: StreamContract | None = None, engine: Engine = ENGINE
) -> Context:
    about = [each for each in promises if each.check is not None and set(each.forbids) <= set(models.MODELS)]
    prohibited = {each.check or "": (models.prohibited(each.forbids),) for each in about}
    return Context(
        engine=engine,
        promises=promises,
        prohibited=prohibited,
        bounds=Bounds(saved_bits=bits),
        contract=contract,
        excuses=EXCUSES,
    )


def by_check(history: Path, what: Context) -> dict[str, Judgement]:
    with generations(history, what) as known:
        return {check.name: judgement_of(check, known) for check in chosen(what, (*CHECKS, *ndb.CHECKS))}
