"""Request: a study with the addresses of its results; also the exit codes."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.machine.command_line import program
from sweeps.machine.databases import require_search, require_tracking
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study, study_of
from sweeps.searching.selection import grown_study
from sweeps.state.ledger import launches, same_plugins, spell_differences
from sweeps.state.results import RunResult, read_results
from sweeps.study.search import SearchHistory
from sweeps.study.study import Run, Study
from sweeps.tracking.connection import require_artifacts

if TYPE_CHECKING:
    from sweeps.searching.search_history import Owner

# Frozen: exit codes, which scripts check; tests/mixsweep/cli/test_main.py fails.
DONE, SOME_FAILED, BAD_INPUT = 0, 1, 2
"""Exit codes; `sweeps.leasing.holders.BUSY` and `sweeps.machine.signals.INTERRUPTED` are others."""


class RefusedError(Exception):
    """A command cannot do what its command line asks for. The message is one line for the user."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A study, with the addresses of its store, of MLflow and of Optuna."""

    reference: str
    """Name or file of the study, as the user has typed it."""
    command: str = field(default="mixsweep", compare=False)
    """Command line that records and reports name, without secrets."""
    overrides: tuple[str, ...]
    """Settings that override those of the study file, each as `PATH=VALUE`."""
    plugins: tuple[str, ...] = ()
    """Plugin files given on the command line."""
    study: Study
    """The study as its file defines it; the points of a search are not included."""
    home: Home
    """Home folder, with the addresses of the store, MLflow and Optuna."""

    @classmethod
    def read(  # noqa: PLR0913  what a request consists of
        cls,
        study: str | Path | Mapping[str, Any],
        overrides: Sequence[str] = (),
        *,
        home: Home,
        plugins: Sequence[str] = (),
        command: str | None = None,
        reads_only: bool = False,
    ) -> Self:
        """Read the study of a request; if it only reads results, plugins need not be loaded."""
        if isinstance(study, Mapping):
            loaded = study_of(study, overrides)
            reference = loaded.name
        else:
            reference = str(study)
            loaded = load_study(reference, overrides, home.store, reads_only=reads_only)
        request = cls(
            reference=reference, overrides=tuple(overrides), plugins=tuple(plugins), study=loaded,
            home=home,
        )  # fmt: skip
        line = shlex.join(["mixsweep", "run", reference, *request.changes()])
        return replace(request, command=command or line)

    @cached_property
    def history(self) -> SearchHistory:
        """The points (sets of values) that the study's search has proposed; empty if none."""
        if self.study.search is None:
            return SearchHistory()
        from sweeps.searching.search_history import read_history

        require_search(self.home.optuna_url)
        return read_history(self.study, self.home.optuna_url, self.search_owner())

    def search_owner(self, *, is_writing: bool = False) -> "Owner | None":
        """Return the study and store to which a search in Optuna's database belongs.

        None if the database is in this home, because then no other home uses it.
        """
        if self.home.optuna is None:
            return None
        from sweeps.searching.search_history import Owner

        return Owner.of(self.study, self.store, is_writing=is_writing)

    @property
    def grown(self) -> Study:
        """The study, with the search points, confirmation and seeds that were added so far."""
        if self.study.until is None:
            return grown_study(self.study, self.history, self.store)
        return self._reached

    @cached_property
    def _reached(self) -> Study:
        from reports.numbers.looks import reached_study

        return reached_study(self.study, self.store)

    @property
    def store(self) -> Store:
        """The store with the study's results and checkpoints."""
        return Store(self.home.store)

    def results(self) -> tuple[RunResult, ...]:
        """Read the stored results of every run of the study; those of a missing run are empty."""
        return read_results(self.grown.runs(), self.store)

    def spell(self, verb: str) -> str:
        """Return the command line of a command of `mixsweep` for this study and its addresses."""
        line = [program(), verb, self.reference, *self.changes()]
        return f"{shlex.join(line)} {self.home.options}"

    def changes(self) -> list[str]:
        """Return the options `--set` and `--plugin` that were given, as command-line arguments."""
        overrides = [part for override in self.overrides for part in ("--set", override)]
        return [*overrides, *(part for file in self.plugins for part in ("--plugin", file))]

    def say_elsewhere(self, *, edits_alone: bool = False) -> None:
        """Print a hint for each earlier launch of this study here with other settings."""
        for sentence in stored_elsewhere(self.study, self.grown.runs(), self.store, edits_alone):
            click.echo(sentence, err=True)

    def require_store(self) -> None:
        """Check that the store exists; if it does not, its address may be wrong."""
        if self.store.is_absent:
            raise RefusedError(
                f"{self.home.shown_store}: this store does not exist, so nothing of the study "
                f"{self.study.name} is stored there"
            )

    def require_stored(self) -> None:
        """Check that the store contains results of the study; if not, its address may be wrong."""
        self.require_store()
        launched = launches(self.store, self.study.name)
        if any(launch.settings == self.study.settings for launch in launched):
            return
        if any(result.outcome != "missing" for result in self.results()):
            return
        message = f"{self.home.shown_store}: nothing of the study {self.study.name} is stored there"
        others = []
        for launch in launched:
            different = spell_differences(launch.arms, self.study)
            runs = f"{launch.num_finished(self.store.keys())} finished runs of {launch.command!r}"
            others.append(f"{runs} with {different}" if different else runs)
        if others:
            message += f" with these settings; the store has {'; '.join(others)}"
        raise RefusedError(message)

    def require_databases(self) -> None:
        """Check that the databases of MLflow and Optuna, and the artifacts, can be written."""
        require_tracking(self.home.tracking_uri, self.spell("sync"))
        require_artifacts(self.home.artifact_location)
        if self.study.search is not None:
            require_search(self.home.optuna_url)

    def refreshed(self) -> "Request":
        """Return a copy of this request that reads cached values, such as search points, again."""
        return replace(self)

    def data_checksums(self) -> dict[str, dict[str, str]]:
        """Return the checksums of the study's data files, by dataset and then by file name.

        Of different files with one name, such as two folders of images, later ones get a number.
        """
        merged: dict[str, dict[str, str]] = {}
        if self.study.problem.data is not None:
            needs = self.study.problem.data()
            for config in self.study.arms.values():
                for name, checksums in needs.checksums(config).items():
                    known = merged.setdefault(name, {})
                    for file, checksum in checksums.items():
                        key, count = file, 1
                        while known.setdefault(key, checksum) != checksum:
                            count += 1
                            key = f"{file} ({count})"
        return merged


def stored_elsewhere(
    study: Study, shown: Iterable[Run], store: Store, edits_alone: bool = False
) -> list[str]:
    """Return a sentence for each earlier launch of a study that had other settings, in this store.

    A launch is left out if all its finished runs are among those that are shown.
    """
    others = [
        launch
        for launch in launches(store, study.name)
        if launch.settings != study.settings
        and not (edits_alone and same_plugins(launch.arms, study))
    ]
    if not others:
        return []
    stored = set(store.keys()) - {stage_keys(run.config)[-1] for run in shown}
    sentences = []
    for launch in others:
        if finished := launch.num_finished(stored):
            differences = spell_differences(launch.arms, study) or "other settings"
            runs = "1 finished run" if finished == 1 else f"{finished} finished runs"
            sentences.append(f"{runs} stored here with {differences}")
    return sentences
