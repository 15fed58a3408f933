"""`seamark clusters`: lists the systems that can be tested, with their options."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from harness.cli.output import print_json
from harness.cli.texts.promises_page import promises_pages
from harness.core.errors import ScenarioError
from harness.core.seams import Cluster
from harness.report.screen import plain, say
from harness.scenario.consent import cluster_names, on_command_line
from harness.scenario.own_checks import checks_of
from harness.scenario.registry import load_cluster


def clusters(
    names: Annotated[list[str] | None, typer.Argument(help="Which clusters. Default: all that are installed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write pages of all promises, with the anomalies that break each, there."),
    ] = None,
) -> int:
    """List the clusters, each in a line.

    Those that are named are shown with their promises, bugs, workloads and faults.
    """
    if as_json and markdown is not None:
        raise ScenarioError("--json and --markdown exclude each other: choose one")
    codes = [on_command_line(name) for name in dict.fromkeys(names or cluster_names())]
    found = [load_cluster(code) for code in codes]
    if markdown is not None:
        own = {cluster.name: checks_of(cluster, code) for cluster, code in zip(found, codes, strict=True)}
        _write(markdown, promises_pages(found, own))
        return 0
    if as_json:
        print_json({cluster.name: _described(cluster) for cluster in found})
        return 0
    console = Console(highlight=False)
    if not names:
        width = max(len(cluster.name) for cluster in found)
        for cluster in found:
            say(console, cluster.summary, f"{cluster.name:<{width}}  ")
        say(console, "Nodes, promises, bugs, workloads and faults of one: seamark clusters NAME")
        return 0
    for cluster in found:
        console.print(plain(f"{cluster.name}  {cluster.summary}", "bold"))
        roles = ", ".join(f"{node.id} ({node.role})" for node in cluster.nodes)
        for label, text in (
            ("nodes", roles),
            ("workloads", ", ".join(cluster.workloads)),
            ("faults", ", ".join(cluster.faults)),
            *(("option", f"{option.name}: {option.text} ({', '.join(option.values)})") for option in cluster.options),
            *(("promise", f"{promise.id}: {promise.text}") for promise in cluster.promises),
            *(("bug", f"{bug}: {text}") for bug, text in cluster.bugs.items()),
        ):
            say(console, text, f"  {label:<11}")
    return 0


def _write(folder: Path, pages: dict[str, str]) -> None:
    """Write each page to its path in the folder. Raises ScenarioError if that is impossible."""
    for path, text in pages.items():
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ScenarioError(
                f"{folder / path}: cannot be written ({error.strerror}): choose another folder"
            ) from None


def _described(cluster: Cluster) -> dict[str, object]:
    return {
        "summary": cluster.summary,
        "nodes": {str(node.id): node.role for node in cluster.nodes},
        "promises": [msgspec.to_builtins(promise) for promise in cluster.promises],
        "stream": msgspec.to_builtins(cluster.stream),
        "bugs": dict(cluster.bugs),
        "workloads": cluster.workloads,
        "faults": cluster.faults,
        "options": {option.name: option.values for option in cluster.options},
        "goals": cluster.goals,
        "points": cluster.points,
        "settle_s": cluster.settle_ns / 1e9,
    }
