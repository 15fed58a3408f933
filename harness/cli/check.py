"""`seamark check`: judge a stored run, or a history from elsewhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from checkers import models
from harness.cli.output import print_report
from harness.core.errors import ScenarioError
from harness.engines import EngineStart
from harness.judge import Budget
from harness.single import judge_foreign, judge_run, store_report
from harness.store import RUN_FILE, is_run


def check(
    path: Annotated[Path, typer.Argument(help="A run's directory, or a history: EDN, JSON Lines, JSON, Parquet.")],
    model: Annotated[
        str | None,
        typer.Option(help="The consistency model to judge by. Default: as promised, else strict-serializable."),
    ] = None,
    check_timeout: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds for each check; one that takes longer is unknown.")
    ] = None,
    engine: Annotated[Literal["spark", "local"], typer.Option(help="What judges.")] = "spark",
    master: Annotated[str | None, typer.Option(help="A Spark cluster to judge on, spark://HOST:PORT.")] = None,
    remote: Annotated[str | None, typer.Option(help="A Spark Connect server to judge on, sc://HOST:PORT.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict and how to go on.")] = False,
) -> int:
    """Judge what was recorded, without running any of its code. The exit code is the verdict's."""
    if not path.exists():
        raise ScenarioError(f"{path}: there is no such file or folder; seamark list shows the runs in the store")
    if engine == "local" and (master or remote):
        raise ScenarioError("--master and --remote are Spark's: leave out --engine local")
    if master and remote:
        raise ScenarioError("--master and --remote exclude each other: choose one")
    if model is not None:
        models.canonical(model)
    budget = Budget(check_s=check_timeout)
    run = path.parent if path.name == RUN_FILE else path
    with EngineStart(engine, master=master, remote=remote) as start:
        if is_run(run):
            report = store_report(run, judge_run(run, start.engine, model=model, budget=budget))
        else:
            report = judge_foreign(path, start.engine, model=model, budget=budget)
        return print_report(report, as_json=as_json, is_quiet=quiet)
