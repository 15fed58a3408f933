"""The command line. Exit codes: 0 to 4 are verdicts (`harness.core.verdict`), 64 is bad usage, 130 an interrupt.

SIGTERM ends a command as Ctrl-C does, with exit code 143.
Exit 1 comes from one place only: a report with a finding that breaks a promise, whose verdict a command returns.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from typing import Annotated

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]  # Typer has no other name for it.
from typer.exceptions import Abort, TyperException

from harness.cli.commands import COMMANDS, command_named, function_of
from harness.cli.interrupts import ended_by_signals, is_terminated
from harness.cli.texts.examples import epilog
from harness.core.errors import ScenarioError, SeamarkError
from harness.core.verdict import EXIT_INTERRUPTED, EXIT_TERMINATED, EXIT_USAGE, Verdict
from harness.report.trouble import in_one_line
from harness.scenario.installation import shadowed_package, version

COMPLETE = "_SEAMARK_COMPLETE"  # Typer's variable: a shell sets it to ask for completions.


def main() -> None:
    """Run the command that the arguments name. Raises SystemExit with its code."""
    with ended_by_signals():
        code = guarded(lambda: _dispatch(sys.argv[1:]))
    sys.exit(code)


def guarded(command: Callable[[], int]) -> int:
    """The exit code of `command`. An exception becomes one line on standard error, and never exit code 0 or 1."""
    try:
        return command()
    except TyperException as error:  # Errors in options and arguments: typer's own message, on one line.
        message = error.format_message()
        stop = "" if message.endswith((".", "?")) else "."
        context = getattr(error, "ctx", None)
        path = "seamark" if context is None else context.command_path
        return _complain(f"{message}{stop} See {path} --help.", EXIT_USAGE)
    except (Abort, KeyboardInterrupt):
        word, code = ("terminated", EXIT_TERMINATED) if is_terminated() else ("interrupted", EXIT_INTERRUPTED)
        return _complain(word, code)
    except ScenarioError as error:
        return _complain(str(error), EXIT_USAGE)
    except SeamarkError as error:
        return _complain(str(error), Verdict.ERROR.exit_code)
    except MemoryError:
        line = "out of memory: try a smaller history, or --master for a larger machine"
        return _complain(line, Verdict.ERROR.exit_code)
    except Exception as error:  # noqa: BLE001  The outermost handler: everything else is an error of the harness.
        return _complain(in_one_line(error), Verdict.ERROR.exit_code)


def _dispatch(arguments: list[str]) -> int:
    shadow = shadowed_package()
    if shadow is not None:
        raise ScenarioError(shadow)
    _require_text(("the folder that this is", _here()), ("TMPDIR", tempfile.gettempdir()))
    _require_text(*(("the command line", argument) for argument in arguments))
    code = application(*_to_load(arguments))(arguments, prog_name="seamark", standalone_mode=False)
    if code == EXIT_INTERRUPTED:
        raise KeyboardInterrupt  # Typer turns it into the exit code, without a message.
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _to_load(arguments: list[str]) -> list[str | None]:
    """The command that the arguments name, or, where a shell asks for completions, the one on its command line."""
    if COMPLETE not in os.environ:
        return [command_named(arguments)]
    completion_init()
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return [command_named(words.split())]


def application(*loaded: str | None) -> typer.Typer:
    """The command line, with the commands that are `loaded`. Of the others it knows their line in --help."""
    app = typer.Typer(
        name="seamark",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=epilog(),
    )
    app.callback(invoke_without_command=True)(seamark)
    for name, (_, short_help) in COMMANDS.items():
        function = function_of(name) if name in loaded else _not_loaded
        app.command(name, short_help=short_help, epilog=epilog(name))(function)
    return app


def seamark(
    context: typer.Context,
    is_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> int:
    """Breaks databases and change streams on purpose, and says precisely what they lost."""
    if is_version:
        typer.echo(f"seamark {version()}")
        context.exit(0)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        context.exit(EXIT_USAGE)  # Not 0: a script that forgets the command must not pass.
    return 0


def _not_loaded() -> int:
    raise AssertionError("the command that is named is another one")


def _here() -> str:
    """The working folder. Raises ScenarioError if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise ScenarioError("the folder that this is was removed: change into another one") from None


def _require_text(*named: tuple[str, str]) -> None:
    """Raise ScenarioError if an argument has bytes that are no text here: JSON and Parquet cannot hold them."""
    for place, text in named:
        try:
            text.encode()
        except UnicodeEncodeError:
            advice = "use another name"
            if sys.getfilesystemencoding() != "utf-8":
                advice = f"file names are {sys.getfilesystemencoding()} here: unset PYTHONUTF8, or set LC_ALL=C.UTF-8"
            raise ScenarioError(f"{place}: {os.fsencode(text)!r} is no text in UTF-8: {advice}") from None


def _complain(text: str, code: int) -> int:
    from rich.console import Console  # noqa: PLC0415  The command line loads before what it prints troubles with.

    from harness.report.screen import say  # noqa: PLC0415

    say(Console(stderr=True, highlight=False), f"seamark: {' '.join(text.split())}", is_whole=True)
    return code
