"""Finds clusters: installed entry points of the group `seamark.clusters`, ours among them."""

from importlib.metadata import EntryPoint, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path

from harness.core.errors import ScenarioError
from harness.core.seams import Cluster, MachineCluster, is_of_machines
from harness.scenario import known

GROUP = "seamark.clusters"
PACKAGES = ("harness", "nemesis", "checkers", "clusters")


def cluster_names() -> tuple[str, ...]:
    """The names of all installed clusters, in order."""
    return tuple(sorted(point.name for point in entry_points(group=GROUP)))


def load_cluster(name: str) -> Cluster:
    """The cluster of that name. Raises ScenarioError if there is none, or if its code cannot be loaded."""
    known(name, cluster_names(), "cluster")
    point: EntryPoint = next(iter(entry_points(group=GROUP, name=name)))
    try:
        cluster: Cluster = point.load()()
    except Exception as error:
        raise ScenarioError(f"cluster {name!r} ({point.value}) cannot be loaded: {error!r}") from error
    return cluster


def of_machines(cluster: Cluster) -> MachineCluster:
    """The cluster, as one that can be simulated. Raises ScenarioError if it cannot."""
    if not is_of_machines(cluster):
        raise ScenarioError(f"{cluster.name} is made of real servers, which cannot be simulated: use --runtime docker")
    return cluster


def load_machines(name: str) -> MachineCluster:
    """The cluster of that name, as one that can be simulated. Raises ScenarioError likewise."""
    return of_machines(load_cluster(name))


def code_of(name: str) -> str:
    """Where the cluster of that name is, as "module:attribute": for who must load it in another place."""
    return next(iter(entry_points(group=GROUP, name=name))).value


def shadowed_package() -> str | None:
    """Our package names are common words: one line naming the culprit if another folder answers to one of them."""
    root = Path(__file__).resolve().parent.parent
    for package in PACKAGES:
        spec = find_spec(package)
        where = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if where is None or where.parent != root / package:
            culprit = where or "nothing"
            return (
                f"the package {package!r} is taken by {culprit}: run seamark from another folder, or unset PYTHONPATH"
            )
    return None


def version() -> str:
    """The version of this distribution."""
    return distribution("seamark").version
