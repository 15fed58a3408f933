"""Modules with checks that a system brings: where their source is, what they hold, and which may be loaded.

A run names the modules of its system, and their names in a stored run are no consent to load them: it may come from
anywhere. May be loaded:
1. what the command line names (--checks), whatever the run holds;
2. what Seamark brings for its own clusters, clusters/*/checks: it is as much a part of Seamark as `checkers`;
3. an installed entry point of the group `seamark.checks`, if its source is the one that the run was recorded with;
4. what a cluster names whose own code may be loaded (harness/scenario/consent.py).
Nothing is imported to find out: a digest is computed from the files.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

import clusters
from checkers.engine.protocol import Check
from checkers.own import check as own
from harness.core.errors import ScenarioError, SeamarkError, known
from harness.core.seams import Cluster
from harness.record.store import Brought
from harness.scenario.consent import Code, place_of
from harness.scenario.installation import entry_points
from harness.scenario.registry import OWN_MODULE, content_of, module_in

GROUP: Final = "seamark.checks"
CHECKS: Final = "CHECKS"  # The name under which a module has its checks.
Files = Mapping[str, bytes]  # By their paths in an archive from which Python can import them.


class Source(NamedTuple):
    """A module with checks that may be loaded. `path` is its file; None if it is installed."""

    module: str
    path: Path | None = None

    @property
    def name(self) -> str:
        """The name of the module as a run records it: that of the import, or the path of the file."""
        return self.module if self.path is None else str(self.path)

    def files(self) -> Files:
        """Its files; of a package all that are in its folder. Empty if there is no such module. Imports nothing."""
        if self.path is not None:
            return {f"{self.module}.py": content_of(self.path)}
        spec = _spec(self.module)
        if spec is None or spec.origin is None:
            return {}
        origin, place = Path(spec.origin), self.module.replace(".", "/")
        if spec.submodule_search_locations is None:
            return {f"{place}.py": origin.read_bytes()}
        folder = origin.parent
        return {f"{place}/{each.relative_to(folder).as_posix()}": each.read_bytes() for each in _below(folder)}

    def checks(self) -> tuple[Check, ...]:
        """Its checks. Imports the module. Raises ScenarioError if it cannot be loaded, or has none."""
        module = self._loaded()
        found = getattr(module, CHECKS, None)
        rows = (
            [each.row() if isinstance(each, own.Check) else each for each in found] if isinstance(found, tuple) else []
        )
        if not rows or not all(isinstance(each, Check) for each in rows):
            raise ScenarioError(f"{self.name}: brings no checks: {CHECKS} must be a tuple of seamark.Check")
        return tuple(rows)

    def _loaded(self) -> ModuleType:
        if self.path is not None:
            return module_in(self.path)
        try:
            return import_module(self.module)
        except SeamarkError as error:
            raise ScenarioError(f"{self.module}: {error}") from error
        except Exception as error:
            raise ScenarioError(f"{self.module}: its checks cannot be loaded: {error!r}") from error


class Made(NamedTuple):
    """Checks that a program made. Executors cannot import them: they judge in this process."""

    rows: tuple[own.Check, ...]

    def files(self) -> Files:
        """None."""
        return {}

    def checks(self) -> tuple[Check, ...]:
        """The checks."""
        return tuple(each.row() for each in self.rows)


Loadable = Source | Made


def digest(files: Files) -> str:
    """The hash of a module's files."""
    return sha256(b"".join(name.encode() + b"\0" + files[name] + b"\0" for name in sorted(files))).hexdigest()


@cache
def ours() -> tuple[str, ...]:
    """The modules of checks of Seamark's own clusters. Imports none of them."""
    root = Path(clusters.__file__ or "").parent
    return tuple(f"clusters.{path.parents[1].name}.checks" for path in sorted(root.glob("*/checks/__init__.py")))


def installed() -> Mapping[str, str]:
    """The installed modules of checks by name: ours by the name of the cluster, others by that of the entry point."""
    others = {point.name: point.value for point in entry_points(GROUP)}
    return others | {module.split(".")[1]: module for module in ours()}


def on_command_line(name: str) -> Source:
    """The module that our command line names, which is consent: a file, or an installed one by either of its names.

    Raises ScenarioError if there is no such file or module.
    """
    place = place_of(name)
    if place is not None and not place.name:
        return _in_file(place.path.expanduser())
    modules = installed()
    if name not in modules.values():
        known(name, tuple(modules), "module of checks", besides=", or name a file, as in path/to/file.py")
    return Source(modules.get(name, name))


def named_by(cluster: Cluster, code: Code) -> tuple[Source, ...]:
    """The modules that a cluster names, whose code may be loaded. A file is found from the folder of the cluster's own.

    Raises ScenarioError if one is neither a module nor a file.
    """
    found = []
    for name in getattr(cluster, "checks", ()):
        place = place_of(name)
        if place is not None:
            folder = Path() if code.place is None else code.place.path.parent
            found.append(_in_file(folder / place.path))
        elif _spec(name) is None:
            raise ScenarioError(f"{cluster.name}: its checks: there is no module {name!r}; a file ends in .py")
        else:
            found.append(Source(name))
    return tuple(found)


def checks_of(cluster: Cluster, code: Code) -> tuple[Check, ...]:
    """The checks that a cluster brings. Raises ScenarioError if they cannot be loaded."""
    return tuple(check for source in named_by(cluster, code) for check in source.checks())


def brought(source: Source) -> Brought:
    """The module as a run records it."""
    looked_for = {check.name: tuple(check.anomalies) for check in source.checks()}
    return Brought(module=source.name, sha256=digest(source.files()), checks=looked_for)


def admitted(recorded: Brought, named: Callable[[], Sequence[Source]]) -> tuple[Source | None, str]:
    """The source for a module that a run names, if it may be loaded; else None, and the reason.

    `named` gives what the run's own cluster names, if its code may be loaded.
    """
    if recorded.module in ours():
        return Source(recorded.module), ""
    if recorded.module in installed().values():
        source = Source(recorded.module)
        if digest(source.files()) == recorded.sha256:
            return source, ""
        why = f"the installed {recorded.module} is not the one of the run"
        return None, f"{why}: to judge by it all the same, add --checks {recorded.module}"
    brought_along = next((source for source in named() if _is(source, recorded)), None)
    if brought_along is not None:
        return brought_along, ""
    if recorded.module.endswith(".py"):
        return None, f"{recorded.module} was not loaded: if that may be run, add --checks {recorded.module}"
    return None, f"{recorded.module} is not installed as an entry point of {GROUP}"


def _is(source: Source, recorded: Brought) -> bool:
    """True if the source is the one that a run names; a file may have moved since."""
    return source.name == recorded.module or digest(source.files()) == recorded.sha256


def _in_file(path: Path) -> Source:
    path = path.resolve()
    content_of(path, "checks")  # Raises if it cannot be read.
    return Source(f"{OWN_MODULE}{path.stem}", path)


def _below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _spec(module: str) -> ModuleSpec | None:
    """The module's spec, found without importing the packages that it is in; None if there is none."""
    top, *inside = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    for name in inside:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
    return spec
