"""Finds clusters: installed entry points of the group `seamark.clusters` (ours included), and the user's own files.

A file is named together with an object in it, as "path/to/file.py:Name". Only that file is loaded: its folder is not
put on the path, and nothing is written beside it. The file's hash identifies the code of a run.
"""

import difflib
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.abc import ExecutionLoader
from importlib.util import decode_source, find_spec, module_from_spec, spec_from_loader
from inspect import get_annotations
from pathlib import Path
from types import ModuleType
from typing import Any

from checkers.words import models
from harness.core.command import seamark
from harness.core.errors import ScenarioError, SeamarkError, known
from harness.core.seams import Cluster, MachineCluster, ServiceCluster, is_of_machines, is_of_services
from harness.core.system import CLIENT, SUBSCRIBER
from harness.scenario.consent import Code, Place, entry_point

NAME = re.compile(r"[A-Za-z0-9][\w.-]*")  # The name of a cluster becomes that of a folder.
OPTIONAL = ("checks", "naming", "membership")  # Newer than clusters that others have written.
DEFAULT_METHODS = ("bounds", "promised")
OWN_MODULE = "seamark_own_"  # The prefix of the names of modules loaded from a user's own file.


def load_cluster(code: Code, code_sha256: str | None = None, *, is_checked: bool = False) -> Cluster:
    """The cluster of that code. Raises ScenarioError, with the reason, if it cannot be loaded.

    `code_sha256` is the hash that its file must have: the one recorded with the run. `is_checked` is for a child
    process whose parent has loaded the same code: the anomalies that its promises forbid are not looked up again, as
    that imports every check.
    """
    candidate, where = _installed(code) if code.place is None else _from_file(code.place, code_sha256)
    cluster = _fit(candidate, where)
    for problem in () if is_checked else _unknown_anomalies(cluster, code):
        raise ScenarioError(f"{where}: {problem}")
    return cluster


def _installed(code: Code) -> tuple[Any, str]:
    """An installed cluster, and its place for messages."""
    point = entry_point(code.name)
    where = f"cluster {code.name!r} ({point.value})"
    try:
        return point.load()(), where
    except Exception as error:
        raise ScenarioError(f"{where} cannot be loaded: {error!r}") from error


def of_machines(cluster: Cluster) -> MachineCluster:
    """The cluster, if it can be simulated. Raises ScenarioError if it cannot."""
    if not is_of_machines(cluster):
        raise ScenarioError(f"{cluster.name} is made of real servers, which cannot be simulated: use --runtime docker")
    return cluster


def load_machines(code: Code, code_sha256: str | None = None, *, is_checked: bool = False) -> MachineCluster:
    """As `load_cluster`, for a cluster that can be simulated. Raises ScenarioError if it cannot."""
    return of_machines(load_cluster(code, code_sha256, is_checked=is_checked))


def module_of(code: Code) -> str:
    """The import path of that code in a node's image, as "module:attribute". Raises ScenarioError if images lack it."""
    module = code.name if code.place is not None else entry_point(code.name).value
    if code.place is not None or not module.startswith("clusters."):
        raise ScenarioError(
            f"{module}: its machines are not in a node's image, which holds Seamark's own: --runtime sim"
        )
    return module


def code_sha256_of(code: Code) -> str | None:
    """The hash of the file that defines the cluster; None if it is installed."""
    return None if code.place is None else sha256(content_of(code.place.path)).hexdigest()


def package_of(code: Code) -> Path:
    """The folder with the code of a cluster; its file, if it is in one, or installed as a single module."""
    if code.place is not None:
        return code.place.path
    spec = find_spec(entry_point(code.name).module)
    assert spec is not None
    assert spec.origin is not None
    origin = Path(spec.origin)
    return origin.parent if spec.parent else origin


def _from_file(place: Place, code_sha256: str | None) -> tuple[Any, str]:
    """What a file defines under that name, and its place for messages."""
    module = module_in(place.path, code_sha256)
    names = _defined(module)
    if not place.name:
        found = ", ".join(f"{place.path}:{name}" for name in names)
        raise ScenarioError(f"{place.path}: which of its names is the cluster? {found or 'It defines none'}")
    if place.name not in names and not hasattr(module, place.name):
        nearest = difflib.get_close_matches(place.name, names, 1, 0.5)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"it has {', '.join(names) or 'none'}"
        raise ScenarioError(f"{place.path}: no {place.name!r} in it: {hint}")
    cluster = getattr(module, place.name)
    if isinstance(cluster, type) or (callable(cluster) and not _is_cluster(cluster)):
        cluster = _called(cluster, place.path, f"{place.name}()")
    return cluster, f"{place.path}:{place.name}"


def module_in(path: Path, code_sha256: str | None = None) -> ModuleType:
    """The module in that file. One that was loaded before, from the same text, is not run again.

    Raises ScenarioError if the file has changed, or cannot be loaded."""
    content = content_of(path)
    if code_sha256 not in (None, sha256(content).hexdigest()):
        raise ScenarioError(
            f"{path}: has changed since that run, which cannot be repeated exactly; to carry out its operations "
            f"and faults with what the file is now: {seamark('replay', 'RUN', '--cluster', f'{path}:NAME')}"
        )
    name, loader = f"{OWN_MODULE}{path.stem}", _Text(path, content)
    before = sys.modules.get(name)
    if before is not None and before.__loader__ == loader:
        return before
    spec = spec_from_loader(name, loader, origin=str(path))
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # Dataclasses and msgspec look up annotations there.
    try:
        _called(lambda: loader.exec_module(module), path, "it")
    except ScenarioError:
        del sys.modules[name]
        raise
    return module


class _Text(ExecutionLoader):
    """A loader of source text that was read before, so that the code that runs is the code that was hashed."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path, self._content = path, content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Text) and (self._path, self._content) == (other._path, other._content)

    def __hash__(self) -> int:
        return hash(self._content)

    def get_filename(self, fullname: str) -> str:
        return str(self._path)

    def get_source(self, fullname: str) -> str:
        return decode_source(self._content)


def place_in_own_file(error: BaseException) -> str | None:
    """The innermost place in a user's own file, as FILE:LINE, that the error passed; None if it passed no such file."""
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).startswith(OWN_MODULE)
    ]
    return places[-1] if places else None


def content_of(path: Path, what: str = "the cluster") -> bytes:
    """The bytes of a file with code. Raises ScenarioError if it cannot be read: `what` is in it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{path}: the file with {what} cannot be read ({error.strerror})") from None


def _called(make: Callable[[], object], path: Path, what: str) -> object:
    """The result of `make`. Raises ScenarioError with the line of the file at which it fails."""
    try:
        return make()
    except SeamarkError as error:
        raise ScenarioError(f"{_where(error, path)}: {error}") from error
    except (Exception, SystemExit) as error:
        sibling = path.with_name(f"{(getattr(error, 'name', None) or '').partition('.')[0]}.py")
        hint = ""
        if isinstance(error, ModuleNotFoundError) and sibling != path and sibling.is_file():
            hint = "; a file cannot import another file of its folder: install both as a package, with an entry point"
        if isinstance(error, NameError) and error.name == "__file__":
            hint = "; a system is its file's content alone: put the text into it, or install both as a package"
        kind, text = type(error).__name__, error.msg if isinstance(error, SyntaxError) else str(error)
        raise ScenarioError(f"{_where(error, path)}: {what} cannot be loaded: {kind}: {text}{hint}") from error


def _where(error: BaseException, path: Path) -> str:
    """The file, and its line at which the error was raised or passed through."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _defined(module: ModuleType) -> tuple[str, ...]:
    """The public names that the module itself defines, without imports; of instances only clusters."""
    return tuple(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and (getattr(value, "__module__", "") == module.__name__ or _is_cluster(value))
    )


def _is_cluster(value: object) -> bool:
    return not isinstance(value, type) and (hasattr(value, "service") or hasattr(value, "machine"))


def _fit(cluster: Any, where: str) -> Cluster:
    """The candidate, if it has all members of a cluster.

    Raises ScenarioError that names the missing or wrong member.
    """
    missing = _lacking(cluster, Cluster)
    if is_of_services(cluster):
        missing += _lacking(cluster, ServiceCluster)
    elif is_of_machines(cluster):
        missing += _lacking(cluster, MachineCluster)
    else:
        missing.append("service (for servers as others wrote them) or machine")
    if missing:
        advice = "seamark.System and seamark.MachineCluster have a default for most: see docs/your-own-system.md"
        raise ScenarioError(f"{where} is not a cluster, it lacks: {', '.join(missing)}; {advice}")
    for problem in _problems(cluster):
        raise ScenarioError(f"{where}: {problem}")
    fit: Cluster = cluster
    return fit


def _lacking(cluster: Any, protocol: type) -> list[str]:
    """The members that a protocol itself declares, and a cluster does not, as a base with that name has no code."""
    methods = [name for name, value in vars(protocol).items() if callable(value) and not name.startswith("_")]
    members = (name for name in (*get_annotations(protocol), *methods) if name not in OPTIONAL)
    kind = type(cluster)
    return [
        name
        for name in members
        if not hasattr(cluster, name)
        or (name in methods and name not in DEFAULT_METHODS and getattr(kind, name, None) is vars(protocol)[name])
    ]


def _problems(cluster: Cluster) -> Iterator[str]:
    """Problems of a cluster that would otherwise fail later, with a less clear message."""
    if not isinstance(cluster.name, str) or not NAME.fullmatch(cluster.name):
        yield f"its name {cluster.name!r} must be of letters, digits, dots and dashes: runs are kept under it"
    for field in ("nodes", "dials", "promises", "faults", "workloads", "parameters", "options", "checks"):
        if not isinstance(getattr(cluster, field, ()), tuple):
            yield f"{field} must be a tuple, as in ({getattr(cluster, field)!r},)"
    from harness.scenario.workloads import WORKLOADS  # noqa: PLC0415  All workloads and faults: who loads a cluster
    from nemesis.registry import PACKAGES  # noqa: PLC0415  needs them, and a check of a history from elsewhere does not.

    for field, allowed in (("faults", tuple(PACKAGES)), ("workloads", tuple(WORKLOADS))):
        for name in getattr(cluster, field):
            yield from _unknown(name, allowed, field)
    for option in cluster.options:
        for name in (*option.upgrades, *option.upgrades.values()):
            yield from _unknown(name, option.values, f"upgrades of {option.name}")
    if not cluster.workloads or not cluster.nodes:
        yield "it needs at least one node and one workload"
    if len({node.id for node in cluster.nodes}) < len(cluster.nodes):
        yield "two of its nodes have the same name"
    if is_of_services(cluster):
        yield from _undialled(cluster)


def _undialled(cluster: ServiceCluster) -> Iterator[str]:
    """Roles in `dials` that no node has; and servers that are dialled by no role."""
    roles = {node.role for node in cluster.nodes}
    for pair in cluster.dials:
        for role in sorted(set(pair) - {CLIENT, SUBSCRIBER} - roles):
            yield f"dials names {role!r}, which is the role of none of its nodes: {', '.join(sorted(roles))}"
    for node in cluster.nodes:
        if node.role != SUBSCRIBER and not any(target == node.role for _, target in cluster.dials):
            missing = (CLIENT, node.role)
            yield f"no role dials {node.id}, so it cannot be seen to be ready: add {missing!r} to dials"


def _unknown_anomalies(cluster: Cluster, code: Code) -> Iterator[str]:
    from checkers.catalogue import RECORDS  # noqa: PLC0415  It imports every check.
    from harness.scenario.own_checks import checks_of  # noqa: PLC0415  Likewise.

    own = [name for check in checks_of(cluster, code) for name in check.anomalies]
    for promise in cluster.promises:
        for name in promise.forbids:
            yield from _unknown(name, (*RECORDS, *own, *models.MODELS, *models.ALIASES), f"what {promise.id} forbids")


def _unknown(name: str, allowed: tuple[str, ...], what: str) -> Iterator[str]:
    try:
        known(name, allowed, f"name for {what}")
    except ScenarioError as error:
        yield str(error)
