"""A promise file, written by the user in TOML: the promises of the system behind a foreign history.

`model` is a consistency model, [versions] says what orders the values of registers in transactions, [register] how to
read registers (which must then be linearizable), [stream] is the contract of a change stream, [naming] how its users
name keys and positions, [bounds] are the limits to judge by, each [[view]] is computed from its inputs again, and each
[[promise]] lists forbidden anomalies. The fields
are those of `harness.core.promises` and `checkers.history.registers`. An error message is one line with the place of
the mistake and the correction.
"""

from collections.abc import Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from checkers.engine.protocol import Check, When
from checkers.history.registers import ORDER, Order, Register
from checkers.history.units import is_final_only
from checkers.words import models
from checkers.words.anomalies import NON_LINEARIZABLE
from checkers.words.checks import REGISTERS, TRANSACTIONS
from checkers.words.meanings import meaning
from harness.core.errors import ScenarioError, known, known_at
from harness.core.promises import Bounds, Naming, Promise, StreamContract, View
from harness.core.record import Json
from harness.core.wording import counted, mistake
from harness.record.documents import read_toml

PROBLEM_MAX: Final = 500  # The most characters of a message.
T = TypeVar("T", bound=msgspec.Struct)
_PARTS: Final = ("model", "versions", "register", "stream", "naming", "bounds", "view", "promise")


class Promised(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a promise file. `stream` is None without a stream, `register` if registers are not declared.

    `versions` are the sources of the version order of registers in transactions.
    """

    promises: tuple[Promise, ...]
    stream: StreamContract | None = None
    register: Register | None = None
    versions: Order = ORDER
    bounds: Bounds = Bounds()
    naming: Naming = Naming()


def read_promise_file(path: Path, checks: Sequence[Check]) -> Promised:
    """The promises in that file; `checks` are all checks that exist.

    Raises ScenarioError, in one line, for any mistake.
    """
    parts = read_toml(path)
    try:
        for name in parts:
            known(name, _PARTS, "part of a promise file")
        stream = contract_of(parts["stream"]) if "stream" in parts else None
        promised = Promised(
            promises=(*_of_model(parts), *_of_register(parts), *_promises(path, parts, checks)),
            stream=stream,
            register=_register(parts["register"]) if "register" in parts else None,
            versions=struct_of("[versions]", parts.get("versions", {}), Order),
            bounds=_bounds(parts),
            naming=struct_of("[naming]", parts.get("naming", {}), Naming),
        )
        _require_sense(promised, checks)
    except ScenarioError as error:
        problem = str(error)  # It may quote the file's text, however long.
        problem = problem if len(problem) <= PROBLEM_MAX else f"{problem[:PROBLEM_MAX]} ..."
        raise ScenarioError(f"{path}: {problem}") from None
    return promised


def _of_model(parts: dict[str, Any]) -> list[Promise]:
    """The promise that transactions satisfy a model, if there is one."""
    if "model" not in parts:
        return []
    model = parts["model"]
    if not isinstance(model, str):
        raise ScenarioError('model is one text, such as model = "snapshot-isolation"')
    name = models.decided(model)
    return [Promise(id="MODEL", text=meaning(name), source="model", forbids=(name,), check=TRANSACTIONS)]


def _of_register(parts: dict[str, Any]) -> list[Promise]:
    """The promise that registers are linearizable, if the file declares how to read them."""
    if "register" not in parts:
        return []
    text = "Each register is linearizable: one order of its operations explains every answer."
    forbids = (NON_LINEARIZABLE,)
    return [Promise(id="REGISTER", text=text, source="[register]", forbids=forbids, check=REGISTERS)]


def _register(given: object) -> Register:
    """The options for reading registers. A file that gives the initial value implies that it is known."""
    register = struct_of("[register]", given, Register)
    return msgspec.structs.replace(register, is_initial_known=register.is_initial_known or register.initial is not None)


def _bounds(parts: dict[str, Any]) -> Bounds:
    """The bounds of a file, with its views; a view names the collections that it is computed from."""
    given = parts.get("view", [])
    if not isinstance(given, list):
        raise ScenarioError("view is a list of tables: write [[view]], with two brackets")
    views: list[View] = []
    for number, fields in enumerate(given, start=1):
        view = struct_of(f"[[view]] number {number}", fields, View)
        wanted = 2 if view.operator == "join" else 1
        if len(view.inputs) != wanted:
            raise ScenarioError(
                f"[[view]] number {number}: {view.operator} has {counted(wanted, 'input')}, not {len(view.inputs)}"
            )
        if view.name in {each.name for each in views}:
            raise ScenarioError(f"[[view]] number {number}: there is another view with the name {view.name!r}")
        views.append(view)
    bounds = struct_of("[bounds]", parts.get("bounds", {}), Bounds)
    return msgspec.structs.replace(bounds, views=tuple(views)) if views else bounds


def _promises(path: Path, parts: dict[str, Any], checks: Sequence[Check]) -> list[Promise]:
    given = parts.get("promise", [])
    if not isinstance(given, list):
        raise ScenarioError("promise is a list of tables: write [[promise]], with two brackets")
    result: list[Promise] = []
    for number, fields in enumerate(given, start=1):
        place = f"[[promise]] number {number}"
        if isinstance(fields, dict):
            said = ", ".join(map(str, each)) if isinstance(each := fields.get("forbids"), list) else ""
            fields = {"id": f"P{number}", "text": f"None of: {said}.", "source": path.name, **fields}  # noqa: PLW2901
        promise = struct_of(place, fields, Promise)
        require_breakable(place, promise, checks)
        if promise.id in {each.id for each in result}:
            raise ScenarioError(f"{place}: there is another promise with the id {promise.id!r}")
        result.append(promise)
    return result


def require_breakable(place: str, promise: Promise, checks: Sequence[Check]) -> None:
    """Raise ScenarioError, naming the place, unless some check looks for everything that the promise forbids.

    A promise that forbids anything else could never be broken, and its green row would be wrong.
    """
    if not promise.forbids:
        raise ScenarioError(f"{place}: it forbids nothing: write the names of anomalies or of a consistency model")
    forbidden = _forbidden(checks)
    for name in promise.forbids:
        known_at(place, name, forbidden, "anomaly or consistency model")
        if models.ALIASES.get(name, name) in models.UNDECIDED:
            models.decided(name)
    if promise.check is not None:
        known_at(place, promise.check, tuple(each.name for each in checks), "check")


def _forbidden(checks: Sequence[Check]) -> tuple[str, ...]:
    """All names that a promise can forbid: the anomalies of the checks, and models."""
    anomalies = dict.fromkeys(name for each in checks for name in each.anomalies)
    return (*anomalies, *models.MODELS, *models.ALIASES)


def _require_sense(promised: Promised, checks: Sequence[Check]) -> None:
    """Raise ScenarioError if no check looks for what a promise forbids, or a declaration serves no promise."""
    if not promised.promises:
        raise ScenarioError('the file promises nothing: add model = "serializable", or a [[promise]] with forbids')
    streams = [each for each in checks if each.needs_contract and each.when is When.ALWAYS]
    of_stream = {name for each in streams for name in each.anomalies}
    about = [(each.id, name) for each in promised.promises for name in each.forbids if name in of_stream]
    others = {name for each in checks if each not in streams for name in each.anomalies}
    for promise, name in about:
        if promised.stream is None and name not in others:
            raise ScenarioError(f"promise {promise} forbids {name}: that needs a [stream] with its contract")
    if promised.stream is not None and not about:
        raise ScenarioError("there is a [stream], and no promise about it: add a [[promise]] with forbids = [...]")


def contract_of(given: object) -> StreamContract:
    """The contract in a part [stream]. Raises ScenarioError.

    An identity by position and key means that a position has one row of a key, the final one.
    """
    contract = struct_of("[stream]", given, StreamContract)
    if contract.identity == "position+key" and isinstance(given, dict) and "unit_rows" not in given:
        contract = msgspec.structs.replace(contract, unit_rows="final")
    if contract.identity == "position+key" and not is_final_only(contract):
        raise ScenarioError(
            '[stream]: identity = "position+key" needs unit_rows = "final" and one unit for each position: write '
            'these, or identity = "position+key+value"'
        )
    return contract


def struct_of(place: str, given: object, kind: type[T]) -> T:
    """A table of a TOML file as a struct of that kind. Raises ScenarioError."""
    if not isinstance(given, dict):
        raise ScenarioError(f"{place}: it is no table of fields")
    fields, hints = msgspec.structs.fields(kind), get_type_hints(kind)
    for name, value in given.items():
        known_at(place, name, tuple(field.name for field in fields), "field")
        choices = get_args(hints[name]) if get_origin(hints[name]) is Literal else ()
        if choices and isinstance(value, str):
            known_at(place, value, choices, name)
    for field in fields:
        if field.required and field.name not in given:
            raise ScenarioError(f"{place}: it has no {field.name}: write {_wanted(field.name, hints[field.name])}")
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{place}: {mistake(error)}") from None


def _wanted(name: str, hint: Any) -> str:
    """An example of that field's syntax."""
    choices: tuple[Json, ...] = get_args(hint) if get_origin(hint) is Literal else ()
    if choices:
        return " or ".join(f'{name} = "{choice}"' for choice in choices)
    return f"{name} = [...]" if get_origin(hint) is tuple or isinstance(hint, UnionType) else f"{name} = ..."
