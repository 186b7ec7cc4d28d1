"""The command line. Commands are loaded when they are used, what they need when they work."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = ("demo", "fit", "predict", "recommend", "similar", "evaluate", "info", "datasets")
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
    given = sys.argv[1:] if arguments is None else list(arguments)
    sys.exit(_run(given, debug="--debug" in given))


def _run(arguments: list[str], debug: bool) -> int:
    try:
        answer = bemf.main(arguments, prog_name="bemf", standalone_mode=False)
        sys.stdout.flush()
        return answer if isinstance(answer, int) else 0
    except click.UsageError as error:
        error.show()
        return WRONG_USE
    except click.ClickException as error:
        return _say(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted; nothing was written")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it flushes
        return _say("the output was closed before all of it was written")
    except Exception as error:
        if debug:
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    """One line for an error; those that nobody foresaw say how to see more."""
    from bemf.errors import BemfError, ParameterError

    if isinstance(error, ParameterError):
        _say(str(error))
        return WRONG_USE
    if isinstance(error, BemfError):
        return _say(str(error))
    if isinstance(error, OSError):
        return _say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    if isinstance(error, MemoryError):
        return _say("there is not enough memory for this")
    return _say(f"{type(error).__name__}: {error} (bemf --debug … shows where)")


def _say(message: str) -> int:
    click.echo(f"bemf: {' '.join(message.split())}", err=True)
    return FAILED
