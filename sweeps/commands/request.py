"""Request: the study and the places that a command line names, and the exit codes of commands."""

import functools
import math
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from mixup_core.addresses import HIDDEN, Address, store_address, without_secrets
from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.machine.arguments import OPTUNA, STORE, TRACKING
from sweeps.machine.concealed import conceal
from sweeps.machine.databases import database_address
from sweeps.machine.home import Home
from sweeps.machine.sqlite_files import require_search, require_tracking
from sweeps.reading.study_file import load_study
from sweeps.searching.selection import grown_study
from sweeps.state.ledger import Launch, launches, same_plugins, spell_differences
from sweeps.state.results import RunResult, read_results
from sweeps.study.search import SearchHistory
from sweeps.study.study import Study
from sweeps.tracking.database import require_artifacts

if TYPE_CHECKING:
    from sweeps.searching.owner import Owner

DONE, SOME_FAILED, BAD_INPUT, BUSY = 0, 1, 2, 3
"""Exit codes; the exit code of an interrupt is `sweeps.machine.signals.INTERRUPTED`."""

home_option = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    envvar="MIXSWEEP_HOME",
    show_default=True,
    help="Folder that holds all results.",
)
"""Option and environment variable of each address that takes the place of a part of a home."""
_RECORDED = {"--set", "--arms", "--metric", "--gpus-per-run", "--plugin"}
"""Options with free text that never contain a secret; recorded command lines keep their values."""


def _concealing(shown: Callable[[str], Address]) -> Callable[..., str | None]:
    """Return the callback of an address option; it registers the secrets to hide in messages."""

    def callback(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
        del context, parameter
        if url:
            conceal(url, shown(url))
        return url

    return callback


store_option = click.option(
    STORE[0],
    "store_url",
    envvar=STORE[1],
    callback=_concealing(store_address),
    help="Checkpoint store, a path or an fsspec URL; default: store/ in the home.",
)
optuna_option = click.option(
    OPTUNA[0],
    envvar=OPTUNA[1],
    callback=_concealing(database_address),
    help="Storage of a search, a database URL or the path of a journal file; "
    "default: optuna.db in the home.",
)
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a path of the study file, e.g. seeds=6; repeatable.",
)


def _use(
    context: click.Context, parameter: click.Parameter, files: tuple[str, ...]
) -> tuple[str, ...]:
    """Load plugin files before any study is read; the callback of `--plugin`."""
    del context, parameter
    if files:
        from mixup_core.plugins.loading import use

        for file in files:
            use(file)
    return files


plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    is_eager=True,
    callback=_use,
    help="Python file that adds models, datasets, operations, ... to study files; repeatable.",
)
loading_option = click.option(
    "--plugin",
    multiple=True,
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_use,
    help="Python file that adds models, datasets, operations, ... to study files; repeatable.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="For machines.")


class RefusedError(Exception):
    """A request that cannot be fulfilled; its message is one line for the user."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A study and the places of its results."""

    reference: str
    """Name or file of the study, as typed."""
    overrides: tuple[str, ...]
    """Settings that override those of the study file, each as `PATH=VALUE`."""
    plugins: tuple[str, ...] = ()
    """Plugin files given on the command line."""
    study: Study
    """The study as its file defines it, without the points of a search."""
    home: Home
    """The home, with the addresses of store, MLflow and Optuna."""

    @cached_property
    def history(self) -> SearchHistory:
        """Points proposed so far; empty if the study is not a search."""
        if self.study.search is None:
            return SearchHistory()
        from sweeps.searching.search_history import read_history

        require_search(self.home.optuna_url)
        return read_history(self.study, self.home.optuna_url, self.search_owner())

    @cached_property
    def weighed_history(self) -> SearchHistory:
        """`history`, with the importance of each hyperparameter."""
        if self.study.search is None:
            return self.history
        from sweeps.searching.search_history import read_importances

        owner = self.search_owner()
        importances = read_importances(self.study, self.home.optuna_url, owner)
        return replace(self.history, importances=importances)

    def search_owner(self, *, is_writing: bool = False) -> "Owner | None":
        """Return the owner of the search; None if its storage belongs to this home alone."""
        if self.home.optuna is None:
            return None
        from sweeps.searching.owner import Owner

        return Owner.of(self.study, self.store, is_writing=is_writing)

    @property
    def grown(self) -> Study:
        """The study with the points, the confirmation runs and the seeds that it has by now."""
        if self.study.until is not None:
            return self._reached
        return grown_study(self.study, self.history, self.store)

    @cached_property
    def _reached(self) -> Study:
        from reports.numbers.claim_looks import reached_study

        return reached_study(self.study, self.store)

    @property
    def store(self) -> Store:
        """The checkpoint store."""
        return Store(self.home.store)

    def results(self) -> tuple[RunResult, ...]:
        """Return the stored result of each run; computed once."""
        return read_results(self.grown.runs(), self.store)

    def spell(self, verb: str) -> str:
        """Return the command line that runs another command on the same study and places.

        An address with secrets is written as its environment variable.
        """
        home = self.home
        line = [program(), verb, self.reference, *self.changes(), "--home", str(home.folder)]
        spelled = shlex.join(line)
        for (option, variable), place, shown in (
            (STORE, home.store_url, home.shown_store),
            (TRACKING, home.tracking, home.shown_tracking),
            (OPTUNA, home.optuna, home.shown_optuna),
        ):
            if place is not None:
                value = shlex.quote(place) if shown.is_whole else f'"${variable}"'
                spelled += f" {option} {value}"
        return spelled

    def changes(self) -> list[str]:
        """Return the options that change the study: `--set` and `--plugin`."""
        overrides = [part for override in self.overrides for part in ("--set", override)]
        return [*overrides, *(part for file in self.plugins for part in ("--plugin", file))]

    def say_elsewhere(self, *, edits_alone: bool = False) -> None:
        """Print which finished runs of the study the store has under other settings, if any.

        Args:
            edits_alone: If True, mention only launches with another version of a plugin: since that
                edit, their results no longer belong to the study.
        """
        others = [
            launch
            for launch in launches(self.store, self.study.name)
            if launch.settings != self.study.settings
            and not (edits_alone and same_plugins(launch.arms, self.study))
        ]
        if not others:
            return
        own = {stage_keys(run.config)[-1] for run in self.grown.runs()}
        stored = set(self.store.keys()) - own
        for launch in others:
            if finished := launch.num_finished(stored):
                told = spell_differences(launch.arms, self.study) or "other settings"
                runs = "1 finished run" if finished == 1 else f"{finished} finished runs"
                click.echo(f"{runs} stored here with {told}", err=True)

    def require_stored(self) -> None:
        """Check that the store has something of the study; a wrong place is reported as an error.

        Raises:
            RefusedError: If it has no epoch, no failure and no launch of the study.
        """
        if any(launch.settings == self.study.settings for launch in self._launches):
            return
        if any(result.outcome != "missing" for result in self.results()):
            return
        place = self.home.shown_store
        if not self._launches:
            raise RefusedError(f"{place}: nothing of the study {self.study.name} is stored there")
        stored = "; ".join(
            f"{launch.num_finished(self.store.keys())} finished runs of {launch.command!r}"
            for launch in self._launches
        )
        raise RefusedError(
            f"{place}: nothing of the study {self.study.name} is stored there with these settings; "
            f"stored are {stored}"
        )

    @cached_property
    def _launches(self) -> tuple[Launch, ...]:
        return launches(self.store, self.study.name)

    def require_databases(self) -> None:
        """Check that the databases and the artifact folder of the study can be written.

        Raises:
            DatabaseError: If one cannot be written; the message says what to do.
        """
        require_tracking(self.home.tracking_uri, self.spell("sync"))
        require_artifacts(self.home.artifact_location)
        if self.study.search is not None:
            require_search(self.home.optuna_url)

    def refreshed(self) -> "Request":
        """Return a copy with empty caches, to read the results again."""
        return replace(self)

    def data_checksums(self) -> dict[str, dict[str, str]]:
        """Return the checksums of the data files, by data set and file."""
        merged: dict[str, dict[str, str]] = {}
        if self.study.problem.data is not None:
            needs = self.study.problem.data()
            for config in self.study.arms.values():
                for name, checksums in needs.checksums(config).items():
                    merged.setdefault(name, {}).update(checksums)
        return merged


def on_study(command: Callable[..., int]) -> Callable[..., int]:
    """Decorate a command with the options of a `Request`, which becomes its first argument."""
    return _with_requests(command, click.argument("study"))


def on_studies(command: Callable[..., int]) -> Callable[..., int]:
    """Decorate a command to run on each of several studies in turn, as `on_study` does for one.

    All study files are read before the first command runs. The exit code is the largest of all.
    """
    argument = click.argument("study", nargs=-1, required=True, metavar="STUDY...")
    return _with_requests(command, argument)


def _with_requests(command: Callable[..., int], argument: Callable[..., Any]) -> Callable[..., int]:
    """Return the command with the argument for studies, and the options that they all share."""

    def with_requests(  # noqa: PLR0913  the options that every command on a study has
        study: str | tuple[str, ...],
        home: Path,
        store_url: str | None,
        tracking: str | None,
        optuna: str | None,
        overrides: Sequence[str],
        plugins: tuple[str, ...],
        **options: Any,
    ) -> int:
        place = Home(folder=home, store_url=store_url, tracking=tracking, optuna=optuna)
        requests = [
            Request(
                reference=reference,
                overrides=tuple(overrides),
                plugins=plugins,
                study=load_study(reference, overrides, place.store),
                home=place,
            )
            for reference in ((study,) if isinstance(study, str) else study)
        ]
        return max(command(request, **options) for request in requests)

    wrapped: Any = functools.wraps(command)(with_requests)
    wrapped.__click_params__ = []
    for decorate in (
        plugin_option,
        set_option,
        click.option(
            TRACKING[0],
            "tracking",
            envvar=TRACKING[1],
            callback=_concealing(database_address),
            help="MLflow server or database; default: mlflow.db in the home.",
        ),
        optuna_option,
        store_option,
        home_option,
        argument,
    ):
        wrapped = decorate(wrapped)
    # Click reads the last of the list first: the command's options, the study, then arguments.
    own = getattr(command, "__click_params__", [])
    after = [parameter for parameter in own if isinstance(parameter, click.Argument)]
    options = [parameter for parameter in own if parameter not in after]
    wrapped.__click_params__[:] = [*after, *wrapped.__click_params__, *options]
    decorated: Callable[..., int] = wrapped
    return decorated


def placement_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options for the placement of runs, and for keeping their weights, to a command.

    Its parameters are then `slots`, `gpus_per_run`, `cpus_per_run`, `device` and
    `keep_final_states`.
    """
    for decorate in reversed(_PLACEMENT):
        command = decorate(command)
    return command


class AtLeastZero(click.FloatRange):
    """A finite number >= 0; click's own `FloatRange` would accept nan and inf."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number; for any other value `click` ends the command with exit code 2."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def _gpu_share(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> float | Literal["auto"] | None:
    """Return the GPU share of a run as typed: a number or `auto`."""
    if value is None:
        return None
    if value == "auto":
        return "auto"
    return AtLeastZero().convert(value, parameter, context)


_PLACEMENT = (
    click.option(
        "--slots",
        type=click.IntRange(min=1),
        help="Runs trained side by side; default: what CPUs or GPUs hold, also of nodes that join.",
    ),
    click.option(
        "--gpus-per-run",
        metavar="SHARE",
        callback=_gpu_share,
        help="0, 1 or 1/k; default: 1 where there are GPUs. auto begins with an eighth, and runs "
        "that lack memory go on with twice as much.",
    ),
    click.option(
        "--cpus-per-run",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="CPUs reserved for a run, which computes in one thread all the same.",
    ),
    click.option(
        "--device",
        type=click.Choice(["cpu"]),
        help="cpu: compute there though GPUs are reserved, to rehearse a placement.",
    ),
    click.option(
        "--keep-final-states",
        is_flag=True,
        help="Keep the weights of finished runs, so that longer runs can go on from them.",
    ),
)


def program() -> str:
    """Return the name of this program for a command line; its path if it is not on the PATH."""
    started = Path(sys.argv[0])
    if started.name != "mixsweep" or shutil.which("mixsweep") is not None:
        return "mixsweep"
    here = Path.cwd()
    return str(started.relative_to(here) if started.is_relative_to(here) else started)


def command_line() -> str:
    """Return the current command line in a form that may be recorded.

    The value of a free-text option, such as an address or a shell command, is hidden, unless the
    option is known to contain no secret (`_RECORDED`).
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
            for each in value if parameter.multiple else (value,):
                parts = each if parameter.nargs != 1 else (each,)
                options += [parameter.opts[0], *(_recorded(parameter, part) for part in parts)]
    return shlex.join(["mixsweep", *names, *arguments, *options])


def _recorded(option: click.Option, value: Any) -> str:
    """Return an option's value as text for a record, hidden if it may contain a secret."""
    if isinstance(option.type, click.types.StringParamType) and option.opts[0] not in _RECORDED:
        return HIDDEN
    return f"{value:g}" if isinstance(value, float) else without_secrets(str(value))
