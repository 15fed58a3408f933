"""All packages and faults, found in the files of nemesis/faults: a new file there is a new package."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from harness.core.promises import Excuse
from nemesis import faults
from nemesis.fault import Fault, Package

_MODULES = [
    import_module(f"{faults.__name__}.{file}") for file in sorted(m.name for m in iter_modules(faults.__path__))
]
_ALL: tuple[Package, ...] = tuple(
    package for module in _MODULES for package in getattr(module, "PACKAGES", None) or (module.PACKAGE,)
)
PACKAGES: Mapping[str, Package] = MappingProxyType({package.name: package for package in _ALL})
FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for package in _ALL for fault in package.faults})
EXCUSES: Mapping[str, Excuse] = {  # By package name.
    name: package.excuse for package in _ALL for name in (package.name, package.former) if name is not None
}
UNATTACHABLE = frozenset(
    [package.name for package in _ALL if not package.is_attachable]
    + [fault.name for fault in FAULTS.values() if fault.is_prepared]
)
