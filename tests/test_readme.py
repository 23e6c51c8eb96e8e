"""The README names every command and option of the program, and none that it lacks."""

import re
import shlex

import pytest
from support import ROOT
from typer.main import get_command

from disco_cli.cli import app

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAM = get_command(app)
SHARED = {"--help", "--version", "--install-completion", "--show-completion"}


def leaves(command, name="disco"):
    """Yield (full name, command) of every command that does something itself."""
    if not hasattr(command, "list_commands"):
        yield name, command
        return
    for child in command.list_commands(None):
        yield from leaves(command.get_command(None, child), f"{name} {child}")


COMMANDS = dict(leaves(PROGRAM))


def options(command):
    """Return the long options of a command."""
    return {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("--")}


def examples():
    """Return every example line of the README that calls disco, without its comment."""
    lines = [line.strip() for line in README.splitlines() if re.match(r"    \s*disco ", line)]
    return [line.split("  #")[0].split(" | ")[0] for line in lines]


@pytest.mark.parametrize("line", examples())
def test_examples_name_only_what_exists(line):
    words = shlex.split(line)
    name = next(" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in COMMANDS)
    unknown = {w for w in words if w.startswith("--")} - options(COMMANDS[name])
    assert not unknown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_an_example_and_a_heading(name):
    assert f"### `{name}" in README
    assert any(line.startswith(name) for line in examples())
    assert name in (COMMANDS[name].help or "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_named_and_has_help(name):
    for parameter in COMMANDS[name].params:
        if parameter.name == "help":
            continue
        assert parameter.help, parameter.name
        for option in parameter.opts:
            if option.startswith("--"):
                assert option in README


def test_no_option_is_named_that_no_command_has():
    known = set().union(*(options(command) for command in COMMANDS.values())) | SHARED
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", README))
    assert named <= known
