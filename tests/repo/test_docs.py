"""What the pages say is so: links lead somewhere, commands exist, examples work, and the promises are today's."""

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
import typer.main

from checkers.words.models import ALIASES, MODELS, NEAREST, REGISTERS, UNDECIDED
from harness.cli.commands import COMMANDS, function_of
from harness.cli.main import application
from harness.cli.texts.examples import BEGIN, EXAMPLES
from harness.core.draw import Draw
from harness.core.seams import Cluster
from harness.scenario.consent import GROUP, cluster_names, installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import SECOND, topology
from nemesis.registry import PACKAGES
from nemesis.swarm import MIN_PACKAGES
from nemesis.validation import plan_from_json, validate

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted(DOCS.rglob("*.md")),
    *sorted(ROOT.glob("clusters/*/*.md")),
)
FAULTS = DOCS / "faults.md"
OWN, ARCHITECTURE = DOCS / "add-your-own-cluster.md", DOCS / "architecture.md"
MS = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"
app = application(*COMMANDS)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of that language, in order; "" are those of none."""
    return [text for name, text in FENCED.findall(page.read_text(encoding="utf-8")) if name == language]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def clusters() -> list[Cluster]:
    return [load_cluster(installed(name)) for name in cluster_names()]


# Links


def anchors(page: Path) -> set[str]:
    """What a link can name on that page, as GitHub makes it from the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The links and pictures of a page that lead nowhere; those to the web are not followed."""
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    return [link for link in found if not re.match(r"https?:", link) and not leads_somewhere(page, link)]


def leads_somewhere(page: Path, link: str) -> bool:
    place, _, anchor = link.partition("#")
    target = (page.parent / place).resolve() if place else page
    if not target.exists() or ROOT not in (target, *target.parents):
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_the_page_of_models_lists_every_model_with_its_other_names() -> None:
    text = (DOCS / "models.md").read_text(encoding="utf-8")
    for model in MODELS:
        others = ", ".join(f"`{alias}`" for alias, name in ALIASES.items() if name == model)
        refusal = f"no check decides it: use `{NEAREST[model]}`" if model in UNDECIDED else ""
        if model == REGISTERS:
            refusal = f"of single registers alone; for transactions use `{NEAREST[model]}`"
        assert f"| `{model}` | {'; '.join(filter(None, (others, refusal)))} |" in text


def test_a_link_that_leads_nowhere_is_found() -> None:
    page = DOCS / "faults.md"
    assert leads_somewhere(page, "promises/ndb.md#ndb-g1")
    assert not leads_somewhere(page, "promises/ndb.md#ndb-g99")
    assert not leads_somewhere(page, "promisses.md")
    assert not leads_somewhere(page, "../../elsewhere.md")


def test_every_page_can_be_reached_from_the_first() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", prose(page))]
        targets = [(page.parent / link).resolve() for link in links if link.endswith(".md")]
        waiting += [target for target in targets if target not in reached and target.is_file()]
    pages = sorted((*DOCS.glob("*.md"), *DOCS.glob("findings/*.md"), *DOCS.glob("promises/*.md")))
    assert [relative(page) for page in pages if page not in reached] == []


# Commands


def commands(page: Path) -> Iterator[list[str]]:
    """What a page tells to type after `seamark`, in blocks without a language."""
    for block in blocks(page, ""):
        for line in block.splitlines():
            command = line.removeprefix("$ ")
            if re.match(r"seamark [a-z]", command):
                words = shlex.split(command, comments=True)
                yield words[1 : words.index(">") if ">" in words else None]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_command_on_a_page_has_the_options_it_is_given(page: Path) -> None:
    group = typer.main.get_command(app)
    for words in commands(page):
        command = group.get_command(None, words[0])  # type: ignore[attr-defined, unused-ignore]  # The group of a typer app.
        assert command is not None, words
        command.make_context(words[0], words[1:], resilient_parsing=False)


OTHERS = {
    "--seamark-seed",
    "--seamark-count",
    "--seamark-store",
    "--drawn",
    "--initial-cluster",
    "--hypothesis-seed",
    "--help",
}


def options() -> dict[str, set[str]]:
    """Every long option of ours, with the commands that have it."""
    found: dict[str, set[str]] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined, unused-ignore]
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                found.setdefault(option, set()).add(name)
    return {option: names for option, names in found.items() if option.startswith("--")}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_option_that_a_sentence_names_exists(page: Path) -> None:
    every, named_commands = options(), typer.main.get_command(app).commands  # type: ignore[attr-defined, unused-ignore]
    for words in re.findall(r"`([^`]+)`", prose(page).replace("\n", " ")):
        named = re.findall(r"(?<![\w-])--[a-z][\w-]*", words)
        command = re.match(r"seamark ([a-z]+)", words)
        assert not command or command[1] in named_commands, words
        if words.startswith(("seamark", "--")):
            assert set(named) <= every.keys() | OTHERS, words
        assert not command or all(command[1] in every[option] for option in named), words


def test_every_option_is_explained_by_the_help_of_its_command() -> None:
    commands_of_ours = typer.main.get_command(app).commands  # type: ignore[attr-defined, unused-ignore]
    unexplained = [
        f"{name} {parameter.opts[0]}"
        for name, command in commands_of_ours.items()
        for parameter in command.params
        if not (getattr(parameter, "help", None) or "").strip()
    ]
    assert unexplained == []


IN_OTHER_WORDS = {"shrink", "hunt", "doctor", "clean"}  # The first sentence is too long, or not the best in a list.


def test_the_list_of_commands_says_what_their_own_help_begins_with() -> None:
    for name, (_, line) in COMMANDS.items():
        text = function_of(name).__doc__ or ""
        assert text.startswith(line.removesuffix(".")) == (name not in IN_OTHER_WORDS), name


@pytest.mark.parametrize("command", ["", *sorted(EXAMPLES)])
def test_every_example_of_a_help_can_be_typed(command: str) -> None:
    group = typer.main.get_command(app)
    for words, _ in EXAMPLES[command] if command else BEGIN:
        name, *arguments = shlex.split(words)
        chosen = group.get_command(None, name)  # type: ignore[attr-defined, unused-ignore]
        assert chosen is not None
        chosen.make_context(name, arguments, resilient_parsing=False)
        shown = group if not command else chosen
        assert f"seamark {words}  " in str(shown.epilog)
        assert command in {"", name}


# Faults


def test_the_plans_on_the_page_are_accepted_for_the_tutorial() -> None:
    plans = blocks(FAULTS, "json")
    assert plans
    for text in plans:
        plan = plan_from_json(text)
        assert plan.steps
        validate(plan, topology(load_cluster(installed("tutorial"))), duration_ns=60 * SECOND)


def test_the_page_of_faults_has_a_section_on_every_package() -> None:
    text = FAULTS.read_text(encoding="utf-8")
    for package in PACKAGES.values():
        assert f"### {package.name}\n" in text, f"docs/faults.md has no section on {package.name}"
    assert MIN_PACKAGES == 3
    assert "three or more" in text


TOLD = [
    ("slow-subscriber", "bandwidth", "bytes_per_s", "carry 100 to 1000 bytes a second", 100, 1000),
    ("slow-subscriber", "delay", "latency_ns", "take 0.2 to 1.5 seconds", SECOND // 5, SECOND * 3 // 2),
    ("slow-subscriber", "consumer", "delay_ns", "takes 5 to 60 ms for each message", 5 * MS, 60 * MS),
    ("slow-link", "delay", "latency_ns", "take 20 to 250 ms longer", 20 * MS, 250 * MS),
    ("datagrams", "drop", "permille", "2 to 30 percent of the messages are lost", 20, 300),
    ("clock", "clock", "step_ns", "step by up to a minute", -60 * SECOND, 60 * SECOND),
    ("clock", "clock", "drift_ppm", "drift by 0.05 to 20 percent", -200_000, 200_000),
]


@pytest.mark.parametrize(("package", "fault", "argument", "message", "low", "high"), TOLD)
def test_the_page_of_faults_tells_the_range_that_is_drawn(
    package: str, fault: str, argument: str, message: str, low: int, high: int
) -> None:
    section = FAULTS.read_text(encoding="utf-8").split(f"### {package}\n")[1].split("\n##")[0]
    assert message in " ".join(section.split())
    small = topology(load_cluster(installed("tutorial")))
    lossy = msgspec.structs.replace(small, links={**small.links, ("data", "data"): "datagram"})
    stream = Draw(1).stream("faults")
    strikes = [PACKAGES[package].draw(lossy, stream) for _ in range(4_000)]
    drawn = [
        strike.args[argument] for strike in strikes if strike and strike.fault == fault and argument in strike.args
    ]
    values = [value for value in drawn if isinstance(value, int)]
    margin = (high - low) // 20
    assert low <= min(values) <= low + margin
    assert high - margin <= max(values) <= high


# A cluster of one's own


@pytest.fixture(scope="module")
def own_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the page's parts are one module, installed as the page says."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "notes.py").write_text("\n\n".join(blocks(OWN, "python")), encoding="utf-8")
    [text] = blocks(OWN, "toml")
    points = tomllib.loads(text)["project"]["entry-points"]
    lines = [f"{name} = {place}" for name, place in points[GROUP].items()]
    about = folder / "notes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
    return folder


def exit_code(folder: Path, *arguments: str) -> tuple[int, str]:
    """What `seamark ARGUMENTS` comes to where the page's cluster is installed."""
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "seamark", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


ORDERS = ("run", "--cluster", "notes", "--seed", "2", "--time", "10", "--engine", "local", "--quiet")


def test_the_cluster_on_the_page_keeps_its_promise(own_package: Path) -> None:
    code, result = exit_code(own_package, *ORDERS)
    assert code == 0, result


def test_the_bug_on_the_page_is_found(own_package: Path) -> None:
    code, result = exit_code(own_package, *ORDERS, "--bug", "early-answer", "--count", "10", "--until-found")
    assert code == 1, result


def test_the_cluster_on_the_page_passes_the_type_checker(own_package: Path) -> None:
    mypy, page = ROOT / ".venv" / "bin" / "mypy", own_package / "notes.py"
    command = [str(mypy), "--strict", "--no-error-summary", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)


# The drawing


def drawings() -> list[Path]:
    return sorted(DOCS.glob("*.svg"))


def test_the_drawing_is_shown_with_words_for_those_who_cannot_see_it() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    shown = {place: words for words, place in re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", text)}
    assert {path.name for path in drawings()} <= set(shown)
    assert all(len(words) > 20 for words in shown.values())


@pytest.mark.parametrize("path", drawings(), ids=relative)
def test_a_drawing_needs_nothing_from_elsewhere_and_has_a_dark_side(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    root = ET.fromstring(text)  # noqa: S314  Our own file.
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title") is not None
    assert "prefers-color-scheme: dark" in text
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)|@import|@font-face|<script|<image|url\((?!#)", text) == []


def test_the_drawing_names_folders_that_exist() -> None:
    for path in drawings():
        texts = "".join(ET.fromstring(path.read_text(encoding="utf-8")).itertext())  # noqa: S314  Our own file.
        named = re.findall(r"\b(?:harness|nemesis|checkers|clusters)/[\w/.]*\w", texts)
        assert named
        assert [name for name in named if not (ROOT / name).exists()] == []
