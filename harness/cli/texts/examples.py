"""The text below the options in `--help`: commands to begin with, and the exit codes."""

from collections.abc import Mapping
from types import MappingProxyType

from checkers.words.models import MODELS, REGISTERS, UNDECIDED

EXIT_CODES = "Exit codes: 0 PASS, 1 ANOMALY, 2 UNKNOWN, 3 VACUOUS, 4 HARNESS ERROR, 64 bad usage, 130 Ctrl-C."
BEGIN = (
    ("run --seed 7", "a run of ndb under faults, with a verdict and a page"),
    ("replay latest", "the same run once more, byte for byte"),
    ("shrink latest", "the smallest run with the same finding"),
    ("check history.edn", "judge a history from elsewhere"),
    ("serve", "all that was run, in a browser"),
)
EXAMPLES: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "run": (
            ("run --seed 7", "the model of NDB, 60 s of load"),
            ("run --bug lib-any-node-completes --seed 8", "with a planted bug, which is found"),
            ("run --count 200 --jobs 2 --quiet", "200 seeds, one verdict"),
        ),
        "sweep": (
            ("sweep nightly.toml --seed 7000", "its runs with other seeds each night"),
            ("sweep --resume latest", "the rest of an interrupted sweep"),
        ),
        "calibrate": (("calibrate tutorial", "the planted bugs of the smallest cluster"),),
        "check": (
            ("check latest", "judge the last run once more"),
            ("check history.edn --model serializable", "a history from elsewhere"),
            ("check history.edn --shrink small.edn", "and the smallest part of it with its finding"),
        ),
        "export": (("export latest --output history.edn", "for Elle and Knossos"),),
        "replay": (
            ("replay latest", "the same run, every record compared"),
            ("replay latest --trace 12.5..13", "with each message of half a second"),
            ("replay latest --bug none --times 5", "the same operations and faults without the bug"),
        ),
        "shrink": (("shrink latest --bank tests/failures", "and keep the test in a folder of yours"),),
        "hunt": (("hunt --cluster tutorial --bug lost-ack", "found and shrunk in a minute"),),
        "signoff": (("signoff OLD NEW --waivers waivers.toml", "two folders below store/sweeps"),),
        "serve": (("serve", "open the address that it prints"),),
        "clusters": (("clusters tutorial", "its promises and planted bugs"),),
        "new": (("new shop", "then: seamark run --cluster shop.py:shop --runtime docker --time 30"),),
    }
)
DECIDED_MODELS = [f"{name} (single registers)" if name == REGISTERS else name for name in MODELS]
MODELS_SHOWN = (
    f"Models: {', '.join(name for name in DECIDED_MODELS if name not in UNDECIDED)}. Short names, such as SER, SI, RR "
    f"and RC, will do. No check decides these: {', '.join(UNDECIDED)}."
)
JUDGING = ("run", "sweep", "check", "replay", "hunt")  # The exit code of these is the verdict's.


def epilog(command: str = "") -> str | None:
    """The text below the options of a command, or of all if none is named. Marked lines are not filled by typer."""
    examples = EXAMPLES.get(command) if command else BEGIN
    if examples is None:
        return None
    width = max(len(words) for words, _ in examples)
    lines = [f"  seamark {words:<{width}}  {what}" for words, what in examples]
    shown = "\b\n" + "\n".join(["Examples:" if command else "To begin:", *lines])
    models = [MODELS_SHOWN] if command == "check" else []
    return "\n\n".join([*models, shown, *([EXIT_CODES] if command in ("", *JUDGING) else [])])
