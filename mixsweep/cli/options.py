"""Options: command-line options that several commands share, and the line that they make."""

import math
import os
import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

from mixsweep.request import Request
from mixup_core.addresses import HIDDEN, Address, local_path, store_address, without_secrets
from sweeps.machine.command_line import OPTUNA, STORE, TRACKING
from sweeps.machine.databases import database_address
from sweeps.machine.home import Home
from sweeps.reading.study_file import StudyError

RARE = {
    "--again", "--engine", "--keep-final-states", "--metric", "--on-finish", "--optuna", "--price",
    "--store", "--tracking-uri", "--until",
}  # fmt: skip
"""Options that the help of a command lists last, under a heading of their own."""


class StudyCommand(click.Command):
    """Command whose help lists its rare options after the others."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; every usage error knows its command, so it can name its help."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in two sections, the common ones first."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Rarely needed": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                is_rare = not RARE.isdisjoint(parameter.opts)
                sections["Rarely needed" if is_rare else "Options"].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class LocalPath(click.Path):
    """Type of an option or argument that is a local path; expands `~`, also in `--out=~/x`."""

    def __init__(self, **rules: bool) -> None:
        super().__init__(path_type=Path, **rules)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the typed path with `~` expanded, after the checks of `click.Path`."""
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in os.fspath(value)):
            self.fail("the path has a control character (such as a line break)", param, ctx)
        if not os.fspath(value):
            self.fail("the path is empty", param, ctx)
        return super().convert(local_path(os.fspath(value)), param, ctx)


home_option = click.option(
    "--home",
    type=LocalPath(file_okay=False),
    default=Path("runs"),
    envvar="MIXSWEEP_HOME",
    show_default=True,
    help="Folder that contains all results.",
)


def without_secret(
    shown: Callable[[str], Address], variable: str
) -> Callable[..., str | tuple[str, ...] | None]:
    """Return a click callback that refuses an address with a secret, unless a variable gives it.

    Every user of a machine can read the arguments of its processes.
    """

    def callback(
        context: click.Context, parameter: click.Parameter, value: str | tuple[str, ...] | None
    ) -> str | tuple[str, ...] | None:
        source = context.get_parameter_source(parameter.name or "")
        for url in (value,) if isinstance(value, str) else value or ():
            if source is ParameterSource.COMMANDLINE and not shown(url).is_whole:
                raise click.BadParameter(
                    f"the address {shown(url)} has a login or a query, which other users of this "
                    f"machine could read in the command line; set it in the environment variable "
                    f"{variable} instead",
                    context,
                    parameter,
                )
        return value

    return callback


store_option = click.option(
    STORE[0],
    "store_url",
    envvar=STORE[1],
    callback=without_secret(store_address, STORE[1]),
    help="Checkpoint store, a path or an fsspec URL; default: store/ in the home.",
)


optuna_option = click.option(
    OPTUNA[0],
    envvar=OPTUNA[1],
    callback=without_secret(database_address, OPTUNA[1]),
    help="Storage of a search, a database URL or the path of a journal file; "
    "default: optuna.db in the home.",
)


set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Change a key of the study file, e.g. seeds=6 or base.epochs=9; repeatable.",
)


def _use(
    context: click.Context, parameter: click.Parameter, files: tuple[str, ...]
) -> tuple[str, ...]:
    """Load the plugin files of `--plugin` before a study is read; a click callback."""
    del context, parameter
    if files:
        from mixup_core.plugins.loading import use

        for file in files:
            use(file)
    return files


_PLUGIN = partial(
    click.option,
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    is_eager=True,
    callback=_use,
    help="Python file that adds models, datasets, operations, ... to study files; repeatable.",
)
plugin_option, loading_option = _PLUGIN(), _PLUGIN(expose_value=False)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def placement_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that place runs on CPUs and GPUs, and `--keep-final-states`, to a command."""
    for decorate in reversed(_PLACEMENT):
        command = decorate(command)
    return command


class AtLeastZero(click.FloatRange):
    """Type of an option: a finite number >= 0. Click's own `FloatRange` accepts nan and inf."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the typed value as a number; otherwise end the command with exit code 2."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


_PLACEMENT = (
    click.option(
        "--slots",
        type=click.IntRange(min=1),
        help="Number of runs trained at the same time. Default: as many as the CPUs or GPUs of all "
        "nodes allow, including nodes that join later.",
    ),
    click.option(
        "--gpus-per-run",
        metavar="SHARE",
        type=AtLeastZero(),
        help="GPUs per run: 0, 1, 1/2, 1/3, ... (a quarter: 0.25). Default: 1 if there are GPUs.",
    ),
    click.option(
        "--device",
        metavar="KIND",
        help="Train on nodes of one kind: an accelerator type of Ray such as A100, a custom "
        "resource, or a label NAME=VALUE. Default: all nodes.",
    ),
    click.option(
        "--keep-final-states",
        is_flag=True,
        help="Keep the weights of finished runs, so that longer runs can continue from them.",
    ),
)


tracking_option = click.option(
    TRACKING[0],
    "tracking",
    envvar=TRACKING[1],
    callback=without_secret(database_address, TRACKING[1]),
    help="MLflow server or database; default: mlflow.db in the home.",
)


def home_of(
    home: Path, store_url: str | None, tracking: str | None = None, optuna: str | None = None
) -> Home:
    """Return the home of a command; addresses without an option are read from the environment."""
    return Home(
        folder=home,
        store_url=store_url,
        tracking=tracking or os.environ.get(TRACKING[1]),
        optuna=optuna or os.environ.get(OPTUNA[1]),
    )


def on_study(
    takes: Literal["one", "many", "one or none", "any"] = "one",
    *,
    databases: bool = False,
    reads_only: bool = False,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator for a command that has the argument STUDY, `--home`, `--set` and so on.

    The command gets a `Request`; if it takes many studies, it is called once for each after all are
    read, and the exit code is the largest. One that takes one or none gets a `Request` or None, and
    the `Home`; one that takes any number gets a list of requests, and the `Home`. If `reads_only`,
    plugins of launched studies need not be loaded. Options of the command stand above this
    decorator, and its further arguments below.
    """
    argument = {
        "one": click.argument("study"),
        "many": click.argument("study", nargs=-1, required=True, metavar="STUDY..."),
        "one or none": click.argument("study", required=False),
        "any": click.argument("study", nargs=-1, metavar="[STUDY...]"),
    }[takes]

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        def with_requests(  # noqa: PLR0913  the options that every command on a study has
            study: str | tuple[str, ...] | None,
            home: Path,
            store_url: str | None,
            overrides: Sequence[str],
            plugins: tuple[str, ...],
            tracking: str | None = None,
            optuna: str | None = None,
            show_all: bool = False,
            **options: Any,
        ) -> int:
            place, line = home_of(home, store_url, tracking, optuna), command_line()
            try:
                requests = [
                    Request.read(
                        reference, overrides, home=place, plugins=plugins, command=line,
                        reads_only=reads_only,
                    )
                    for reference in ((study,) if isinstance(study, str) else study or ())
                ]  # fmt: skip
            except StudyError as error:
                raise StudyError(_with_settings(error, overrides, show_all=show_all)) from None
            if takes == "any":
                return command(requests, place, **options)
            if takes == "one or none":
                return command(requests[0] if requests else None, place, **options)
            return max(command(request, **options) for request in requests)

        addresses = (tracking_option, optuna_option) if databases else ()
        shared = (plugin_option, set_option, *addresses, store_option, home_option, argument)
        wrapped: Callable[..., int] = wraps(command)(with_requests)
        for add in shared:
            wrapped = add(wrapped)
        return wrapped

    return decorate


def _with_settings(
    error: StudyError, overrides: Sequence[str], *, show_all: bool
) -> tuple[str, ...]:
    """Return the faults of a study; before faults of lines come settings that may cause them."""
    faults = error.whole if show_all else error.faults
    if not overrides or not all(re.search(r":\d+: ", fault) for fault in faults):
        return faults
    options = " ".join(f"--set {shlex.quote(override)}" for override in overrides)
    return (f"with {without_secrets(options)}:", *faults)


_RECORDED = {"--set", "--arms", "--metric", "--gpus-per-run", "--plugin"}
"""Options whose free text never contains a secret. Recorded command lines show their values."""


def command_line() -> str:
    """Return the current command line, with values hidden that may contain a secret.

    The value of a free-text option, such as an address or a shell command, is hidden, unless the
    option is one whose values never contain a secret, such as `--arms`.
    """
    context = click.get_current_context()
    names = [context.info_name or ""]
    while (context.parent is not None) and (context.parent.parent is not None):
        context = context.parent
        names.insert(0, context.info_name or "")
    context = click.get_current_context()
    options: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        is_typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not is_typed or name not in context.params:
            continue
        value = context.params[name]
        if not isinstance(parameter, click.Option):
            arguments += map(str, value if parameter.nargs != 1 else (value,))
        elif parameter.is_flag:
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for occurrence in value if parameter.multiple else (value,):
                parts = occurrence if parameter.nargs != 1 else (occurrence,)
                options += [parameter.opts[0], *(_recorded(parameter, part) for part in parts)]
    return shlex.join(["mixsweep", *names, *arguments, *options])


def _recorded(option: click.Option, value: Any) -> str:
    """Return the value of an option as text; hidden if it may contain a secret."""
    if isinstance(option.type, click.types.StringParamType) and option.opts[0] not in _RECORDED:
        return HIDDEN
    return f"{value:g}" if isinstance(value, float) else without_secrets(str(value))
