"""The command line. Commands are loaded when they are used, what they need when they work."""

from __future__ import annotations

import importlib
import os
import re
import sys
from itertools import takewhile
from typing import TYPE_CHECKING, NoReturn

import click
from click.shell_completion import shell_complete

from bemf.cli.interrupts import heeded

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = ("demo", "fit", "predict", "recommend", "similar", "evaluate", "info", "datasets")
COMPLETION = "_BEMF_COMPLETE"
FAILED, WRONG_USE = 1, 2


class Commands(click.Group):
    """A file for each command, of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"bemf.cli.{cmd_name}").command
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, help="Show where an error came from.")
@click.version_option(package_name="bemf")
def bemf(debug: bool) -> None:
    """Recommendations that say how sure they are.

    \b
    bemf demo                          see what it is for
    bemf fit ratings.csv -o m.bemf     learn from ratings
    bemf recommend m.bemf --user ann   what to recommend, and how sure that is
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command; exits with 0, 1 where the work failed, or 2 where it was asked for wrongly."""
    sys.exit(_run(sys.argv[1:] if arguments is None else list(arguments)))


def _run(arguments: list[str]) -> int:
    try:
        if instruction := os.environ.get(COMPLETION):
            return shell_complete(bemf, {}, "bemf", COMPLETION, instruction)
        with heeded(), bemf.make_context("bemf", list(arguments)) as context:
            bemf.invoke(context)
            sys.stdout.flush()
        return 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in takewhile(lambda each: each.startswith("-"), arguments):
            _trace(error)
        return _explain(error, arguments)


def _trace(error: BaseException) -> None:
    import traceback

    click.echo("".join(traceback.format_exception(error)), err=True, nl=False)


def _explain(error: BaseException, arguments: list[str]) -> int:
    """One line for an error; those that nobody foresaw say how to see more."""
    from bemf.errors import BemfError, ParameterError

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return WRONG_USE
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else f"bemf {_asked(arguments)}".rstrip()
        return _say(f"{error.format_message().rstrip('.')} ({path} --help tells more)", WRONG_USE)
    if isinstance(error, BemfError):
        status = WRONG_USE if isinstance(error, ParameterError) else FAILED
        return _say(_with_options(str(error), arguments), status)
    if isinstance(error, KeyboardInterrupt):
        return _say("interrupted")
    if isinstance(error, OSError):
        return _say(f"{error.filename or _lost_output()}: {error.strerror or error}")
    if isinstance(error, MemoryError):
        return _say("there is not enough memory for this")
    return _say(f"{type(error).__name__}: {error} (bemf --debug … shows where)")


def _with_options(message: str, arguments: list[str]) -> str:
    """What a message names as parameters, `rating=…`, as the options that the command has for them."""
    command = bemf.get_command(click.Context(bemf), _asked(arguments))
    spelled = {option.name: option.opts[0] for option in command.params} if command else {}
    for name in re.findall(r"\b(\w+)=…", message):
        option = spelled.get(name, spelled.get(f"{name}_column"))
        message = message.replace(f"{name}=…", f"{option} …" if option else f"{name}=…")
    return message


def _asked(arguments: list[str]) -> str:
    """The command's name."""
    return next((each for each in arguments if each in COMMANDS), "")


def _lost_output() -> str:
    """Lets go of the output that could not be written, else Python fails once more when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return "the output cannot be written"


def _say(message: str, status: int = FAILED) -> int:
    click.echo(f"bemf: {' '.join(message.split())}", err=True)
    return status
