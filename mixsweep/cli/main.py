"""The command `mixsweep` and its exit codes; Ray, MLflow and torch are imported only if used."""

import io
import os
import re
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from mixsweep.cli.data import data
from mixsweep.cli.ending import Ending
from mixsweep.cli.new import check, new
from mixsweep.cli.plan import plan
from mixsweep.cli.report import report
from mixsweep.cli.run import run, stop
from mixsweep.cli.share import add, share
from mixsweep.cli.status import status
from mixsweep.cli.store import store_commands
from mixsweep.cli.studies import list_studies, schema
from mixsweep.cli.submission import submit
from mixsweep.cli.tracking import sync, ui
from mixsweep.launching.launch import SearchLostError
from mixsweep.request import (
    BAD_INPUT,
    DONE,
    SOME_FAILED,
    RefusedError,
)
from mixup_core.plugins.source import PluginError
from mixup_core.problem import DataError
from mixup_core.rules import escaped, first_line
from mixup_core.store.errors import (
    FREE_SPACE,
    StoreError,
    StoreFullError,
    is_full,
    spell_file_error,
)
from mixup_core.temporary import OutputError
from sweeps.leasing.holders import BUSY, StudyBusyError, StudyLostError
from sweeps.machine.command_line import lost_output, program, read_names_as_utf8, steady_streams
from sweeps.machine.databases import DatabaseError
from sweeps.machine.home import PlaceError
from sweeps.machine.processes import spare_children, user
from sweeps.machine.resources import spell_lack_of_memory
from sweeps.machine.signals import (
    INTERRUPTED,
    given_ending,
    hear,
    leave,
    leave_saying_so,
    spell_interrupt,
)
from sweeps.machine.terminal_text import fitted_text
from sweeps.machine.watchdog import ended_if_interrupted
from sweeps.reading.study_file import StudyError
from sweeps.running.head import HeadLostError
from sweeps.running.jobs import ClusterError
from sweeps.running.placement import PlacementError
from sweeps.running.upload import UploadError
from sweeps.study.search import SearchError

MOVED = {
    "why": "status STUDY ARM SEED",
    "logs": "status STUDY ARM SEED",
    "list": "status",
    "compare": "report STUDY OTHER, or report STUDY --arms A B",
    "export": "report STUDY --epochs FILE, or --predictions FILE",
    "cite": "report STUDY --cite",
    "publish": "report --out FOLDER",
    "doctor": "plan",
    "bench": "plan STUDY, which says how long a study takes here",
}
"""The command line that replaces a command, by the name of the command. For one release."""


SECTIONS = {
    "Choose or write a study": ("studies", "new", "check", "data", "schema"),
    "Train and read": ("plan", "run", "status", "report", "ui", "stop"),
    "Share, clusters and clean-up": ("share", "add", "submit", "sync", "store"),
}
"""Commands by heading, in the order in which `mixsweep --help` lists them."""


class Commands(click.Group):
    """Group of commands that answers a moved command with one line and exit code 2."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its first sentence, below a heading."""
        del ctx
        for heading, names in SECTIONS.items():
            firsts = (re.split(r"[.;]\s", self.commands[name].help or "")[0] for name in names)
            with formatter.section(heading):
                formatter.write_dl(
                    [(name, " ".join(first.split()).rstrip("."))
                     for name, first in zip(names, firsts, strict=True)]
                )  # fmt: skip

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with a name; one that has moved only says where it is now."""
        if cmd_name not in MOVED:
            return super().get_command(ctx, "new" if cmd_name == "init" else cmd_name)
        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        return click.Command(
            cmd_name, add_help_option=False, context_settings=settings,
            callback=partial(_refuse, MOVED[cmd_name]),
        )  # fmt: skip


def _refuse(replacement: str) -> NoReturn:
    raise RefusedError(f"now: {program()} {replacement}")


_REFUSALS = (
    StudyError, DataError, StoreError, DatabaseError, PlaceError, PlacementError, PluginError,
    RefusedError, SearchError, OutputError, ClusterError, UploadError,
)  # fmt: skip

_PATIENCE = 15.0
"""Longest wait, in seconds, for the threads of Ray, which end Ray's processes. This usually takes a
second, and a minute if some of the processes were killed."""


def main() -> NoReturn:
    """Run the command line, and exit with a documented exit code."""
    run_to_end(lambda ending: commands.main(standalone_mode=False, obj=ending))


def run_to_end(action: Callable[[Ending], int]) -> NoReturn:
    """Run an action, print its error as one message, and end this process with an exit code.

    The process must belong to `mixsweep`: its signal handlers, warnings and environment change.
    Other users cannot write to the files that this process and its children create (umask).
    """
    os.umask(os.umask(0o022) | 0o022)
    read_names_as_utf8()
    steady_streams()
    spare_children()
    _ignore_warnings()
    ending, is_cut = Ending(), False
    # Draw figures to files in our style, whatever matplotlib settings the user has.
    os.environ.update(MPLBACKEND="agg", MATPLOTLIBRC=os.devnull)
    try:
        hear()
        _require_working_directory()
        _require_home()
        with ended_if_interrupted():
            code = action(ending)
    except click.exceptions.Exit as exited:
        code = exited.exit_code
    except click.ClickException as error:
        code = _say(spell_usage(error), error.exit_code)
    except (StudyBusyError, StudyLostError) as error:
        is_cut, code = isinstance(error, StudyLostError), _say(error, BUSY)
    except StoreFullError as error:
        code = _say(f"{error}; {FREE_SPACE}", SOME_FAILED)
    except (SearchLostError, HeadLostError) as error:
        is_cut, code = isinstance(error, HeadLostError), _say(error, SOME_FAILED)
    except _REFUSALS as error:
        code = _say(error, BAD_INPUT)
    except (KeyboardInterrupt, click.Abort):
        hear(leave_saying_so)
        is_cut, code = True, _say(*(given_ending() or (spell_interrupt(), INTERRUPTED)))
    except Exception as error:
        if (message := spell_lack_of_memory(error)) is None:
            code = _unforeseen(error)
        else:
            is_cut, code = True, _say(message, SOME_FAILED)
    _end(ending, code or DONE, is_cut=is_cut)


def spell_usage(error: click.ClickException) -> str:
    """Return the message of a wrong command line: the mistake first, in one line."""
    if isinstance(error, click.UsageError) and not isinstance(
        error, click.exceptions.NoArgsIsHelpError
    ):
        path = error.ctx.command_path if error.ctx else program()
        if isinstance(error, click.NoSuchOption):
            return _spell_unknown_option(error, path)
        return f"{error.format_message().rstrip('.')}; see `{path} --help`"
    error.show(file=(text := io.StringIO()))
    return text.getvalue().rstrip()


def _spell_unknown_option(error: click.NoSuchOption, path: str) -> str:
    """Return the message on an unknown option: the nearest one, or the commands that have it."""
    name, context = error.option_name, error.ctx
    root = context.find_root().info_name if context else program()
    owners = [
        f"`{root} {owner}`"
        for owner, command in commands.commands.items()
        if any(name in parameter.opts for parameter in command.params)
    ]
    options = {option for p in context.command.params for option in p.opts} if context else set()
    hint = f" (did you mean {error.possibilities[0]}?)" if error.possibilities else ""
    if owners:
        hint = f"; {' and '.join(owners)} {'has' if len(owners) == 1 else 'have'} this option"
    elif "--set" in options:
        hint += "; --set PATH=VALUE changes a key of the study file"
    return f"`{path}` has no option {name}{hint}; `{path} --help` lists its options"


def _unforeseen(error: Exception) -> int:
    """Print the message of a system error or an internal error; return the exit code."""
    if not isinstance(error, OSError):
        return _say(_mistake(error), SOME_FAILED)
    message = spell_file_error(error)
    if not error.filename:
        try:
            _require_working_directory()
        except RefusedError as refused:
            message = str(refused)
    return _say(message, SOME_FAILED if is_full(error) else BAD_INPUT)


def _end(ending: Ending, code: int, *, is_cut: bool) -> NoReturn:
    """Run the `--on-finish` shell command, then end this process with an exit code.

    If `is_cut`, other threads are not waited for: they may never end.
    """
    if code == DONE and not ending.leaves_files and (lost := lost_output()) is not None:
        code = _say(
            f"standard output: {lost.strerror}; the printed text is incomplete", SOME_FAILED
        )
    code = ending.close(code)
    hear(leave)
    if not (is_cut or ending.has_trained):
        sys.exit(code)
    if not is_cut:
        for thread in threading.enumerate():
            if not thread.daemon and thread is not threading.main_thread():
                thread.join(_PATIENCE)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _ignore_warnings() -> None:
    """Ignore Python warnings, so that PYTHONWARNINGS=error cannot end this process."""
    if sys.warnoptions:
        warnings.simplefilter("ignore")
        os.environ.pop("PYTHONWARNINGS", None)


def _require_working_directory() -> None:
    """Check that the working directory exists and can be read."""
    try:
        Path.cwd()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise RefusedError(
            f"the working directory is gone ({why}); change to another folder"
        ) from error


def _require_home() -> None:
    """Check that a home directory is known; tell libraries the name of a user who has none."""
    try:
        Path.home()
    except RuntimeError as error:
        raise RefusedError(
            f"user {os.geteuid()} has no home directory; set HOME to a folder that this user can "
            "write to"
        ) from error
    os.environ["LOGNAME"] = user()


def _mistake(error: Exception) -> str:
    """Write the traceback of an internal error to a file; return a one-line message about both."""
    trace = "".join(traceback.format_exception(error))
    message = f"an error in mixsweep itself ({type(error).__name__}: {first_line(error)})"
    try:
        number, file = tempfile.mkstemp(prefix="mixsweep-error-", suffix=".txt", text=True)
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as traced:
            traced.write(trace)
    except OSError:
        return message
    return f"{message}; stored results are kept; please report this error with the file {file}"


def _say_version(context: click.Context) -> NoReturn:
    from mixup_core.numeric_settings import installed_version
    from reports.numbers.code_origin import describe_code, spell_code

    code = describe_code()
    commit = "" if code is None else f", {spell_code(code)}"
    click.echo(f"mixsweep {installed_version('mixsweep') or 'of a source tree'}{commit}")
    context.exit()


def _say(message: object, code: int) -> int:
    told = "\n".join(map(escaped, str(message).splitlines()))
    # A command line to copy is not broken into lines.
    click.echo(told if code == INTERRUPTED else fitted_text(told, sys.stderr), err=True)
    return code


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, wanted: _say_version(context) if wanted else None,
    help="Show the version and the commit, and exit.",
)
def commands() -> None:
    """Studies of mixup training, from a study file to a table.

    STUDY is a bundled study or the path of a study file. Exit codes: 0 all done, 1 some runs
    failed or are missing, 2 bad input, 3 another process trains the study, 130 interrupted.
    """


for command in (
    run, plan, status, report, sync, ui, stop, submit, store_commands, data, share, add,
    new, check, schema, list_studies,
):  # fmt: skip
    commands.add_command(command)


if __name__ == "__main__":
    main()
