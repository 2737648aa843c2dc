"""Projection: write a study to MLflow, as a copy of the results in the store.

An empty MLflow is filled from the store, only missing rows are sent, and a run in MLflow that
contradicts the store is replaced.
"""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mixup_core.keys import stage_keys
from mixup_core.problem import problem_of
from mixup_core.store.names import prediction_name
from sweeps.study.readouts import Last, Readout
from sweeps.study.study import Run, Study
from sweeps.tracking.experiment import Experiment
from sweeps.tracking.links import PRIMARY_IS_GREATER_BETTER_TAG, PRIMARY_TAG, view_tags
from sweeps.tracking.logged_names import LoggedNames, params_of
from sweeps.tracking.logged_run import (
    HOME,
    MAX_TAG,
    MODEL_TAG,
    NAME_TAG,
    NOTE_TAG,
    PARENT_TAG,
    LoggedRun,
    Wanted,
    fitting,
)
from sweeps.tracking.missing_rows import missing_rows, superseding_rows
from sweeps.tracking.networks import export_network
from sweeps.tracking.progress import Row, RunProgress, epochs_of
from sweeps.tracking.statuses import STATUSES, arm_outcome
from sweeps.tracking.summaries import Summarise, curves, headline_name, headline_row, texts

PREDICTIONS_TAG = "predictions"
"""Tag with the place of a finished run's predictions in the store; these may be deleted later."""
_MAX_DIFFERENCES = 3

_logger = logging.getLogger(__name__)


class Projection:
    """Writes the results of one study to MLflow; writing raises `MlflowException` if MLflow fails.

    MLflow then has the same results as the store; repeating a call changes nothing. Only one
    process at a time may write a study: its driver, or a command that has the study's lease.
    """

    uri: str
    """The tracking address: URL of an MLflow server or of a database."""

    def __init__(  # noqa: PLR0913  a study, an address, and the facts logged beside results
        self,
        study: Study,
        uri: str,
        *,
        summariser: Callable[[Study, str], Summarise],
        artifact_location: str | None = None,
        tags: Mapping[str, str] | None = None,
        data_checksums: Mapping[str, Mapping[str, str]] | None = None,
        owner: str = HOME,
        record_experiment: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Create the projection; the first method that needs MLflow connects to it.

        Args:
            study: The study, with its arms and the seeds of each arm.
            uri: The tracking address.
            summariser: Function of a study and the name of an arm. It returns the function that
                computes the metrics of the arm from those of its runs (`Summarise`).
            artifact_location: URL for artifacts if the address is a database; None if a server
                chooses it.
            tags: Tags of each run that are set when it is created: commit, dirty, submission_id.
            data_checksums: Checksum of each data file, by dataset and file name.
            owner: Id of the store if several stores can write to the server (see `OWNER_TAG`).
            record_experiment: Function that is called with the id of the study's experiment
                whenever this object has connected to MLflow.
        """
        self._owner, self._record_experiment = owner, record_experiment
        self.grow(study)
        self.uri = uri
        self._summariser = summariser
        self._artifact_location = artifact_location
        self._tags = dict(tags or {})
        self._data_checksums = dict(data_checksums or {})
        self._opened: Experiment | None = None
        self.experiment_id: str | None = None
        """Id of the study's experiment in MLflow; None before the first connection."""

    @property
    def study(self) -> Study:
        """The study that is written to MLflow, with all arms that a search has added so far."""
        return self._names.study

    def grow(self, study: Study) -> None:
        """Replace the study by a copy of it that has more arms, because a search has added points.

        Args:
            study: The study with the new arms.
        """
        self._names = LoggedNames(study)

    def forget(self) -> None:
        """Discard what is cached of MLflow's content, so that it is read before the next write.

        Called after a write raised an error, because MLflow may have stored the data nevertheless.
        """
        self._opened = None

    def reconcile_run(self, progress: RunProgress) -> None:
        """Write new results of a run to MLflow; first create the MLflow run of its arm if missing.

        A run that has not started is not created in MLflow.

        Args:
            progress: The latest known epochs and outcome of the run.
        """
        experiment = self._experiment()
        parent = self._bring_arm(progress.run.arm)
        wanted = self._wanted_seed(progress, parent)
        has_begun = progress.outcome != "missing" or progress.is_live
        if not has_begun and wanted.identity not in experiment.entries:
            return
        entry = experiment.bring(
            wanted,
            partial(missing_rows, progress.rows(), progress.is_live),
        )
        if progress.is_live:
            experiment.set_status(entry, "RUNNING")
        else:
            ended_at_ms = progress.epochs[-1][1].stored_at_ms if progress.epochs else None
            experiment.set_status(entry, STATUSES[progress.outcome], ended_at_ms)
            entry.rows = None  # frees memory; read again if needed

    def reconcile_arm(self, arm: str, seeds: Sequence[RunProgress]) -> None:
        """Update the run of an arm in MLflow to the results of all its seeds.

        Complete runs at seeds that the study no longer has are included. Mean, sd and interval are
        written once all seeds are complete. Until then tags show the results so far, and means that
        were written earlier, when the study had fewer seeds, stay.

        Args:
            arm: Name of the arm.
            seeds: Latest known epochs and outcome of each run of this arm in the study.
        """
        experiment, study = self._experiment(), self.study
        entry = self._bring_arm(arm)
        asked = {run.key for run in study.runs_of(arm)}
        others = []
        for child in experiment.children(entry):
            if child.tags["run_key"] in asked:
                continue
            is_complete = child.tags["outcome"] == "complete"
            is_damaged = not self._is_of(child, arm) or (is_complete and not experiment.rows(child))
            if is_damaged or (not is_complete and arm in study.added):
                experiment.drop(child)  # extra seeds of a point that is now pruned
            elif is_complete:
                others.append(child)
        complete = {str(p.run.seed): p.epochs for p in seeds if p.is_complete}
        complete |= {child.tags["seed"]: epochs_of(experiment.rows(child)) for child in others}
        expected = len(asked) + len(others)
        outcome = arm_outcome({p.outcome for p in seeds}, is_known=len(seeds) == len(asked))
        tags = {"outcome": outcome, "n": f"{len(complete)}/{expected}"}
        rows: list[Row] = []
        if complete:
            runs = list(complete.values())
            summarise = self._summariser(study, arm)
            of = study.problem, study.readout, summarise, study.lead
            tags |= texts(runs, expected, *of)
            if len(complete) == expected:
                tags["seeds"] = fitting(sorted(complete, key=int))
                rows = list(curves(runs, study.problem, summarise, study.lead))
                row = headline_row(runs, self._compared, self._readout, summarise)
                rows += [] if row is None else [row]
        children = experiment.children(entry)
        if not complete.keys() >= set(entry.tags.get("seeds", "").split()):
            experiment.drop(entry)  # its metrics include seeds that the store lost
        missing = partial(superseding_rows, rows) if rows else None
        entry = experiment.bring(self._wanted_arm(arm, tags), missing)
        for child in children:
            experiment.write(child, tags={PARENT_TAG: entry.run_id})
        is_live = any(progress.is_live for progress in seeds)
        experiment.set_status(entry, "RUNNING" if is_live else STATUSES[outcome])
        self._tell_data(entry, arm)
        experiment.tag(self._views(experiment))

    def settle(self) -> None:
        """Set the status of each run that is still RUNNING in MLflow to KILLED.

        It also stores the views that links to MLflow open (`view_tags`). Called as the last write
        of a launch.
        """
        experiment = self._experiment()
        for entry in experiment.entries.values():
            if entry.status == "RUNNING":
                experiment.set_status(entry, "KILLED")
        experiment.tag(self._views(experiment))

    def log_model(self, run: Run, state: bytes) -> None:
        """Upload the trained network of a run, if the run is in MLflow without a network.

        A network that cannot be exported is skipped with a warning.

        Args:
            run: A finished run of a problem that trains networks.
            state: The stored training state after the last epoch of the run.
        """
        experiment = self._experiment()
        entry = experiment.entries.get(("seed", (run.key,)))
        if entry is None or MODEL_TAG in entry.tags:
            return
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            try:
                network, example = self.study.problem.trained(run.config, state)
                described = export_network(network, example, folder)
            except Exception as error:  # a failed export must not block the rest
                _logger.warning(
                    "MLflow gets no model of %s seed %s, for the network cannot be exported: %s",
                    run.arm,
                    run.seed,
                    error,
                )
                return
            experiment.log_model(entry, described, folder)

    def log_report(self, folder: Path, note: str) -> None:
        """Upload a study's report to MLflow, as artifacts of the MLflow run of the whole study.

        Args:
            folder: Folder with the report; all its files are uploaded.
            note: Markdown text for the page of that run, cut to the length that MLflow accepts.
        """
        experiment, study = self._experiment(), self.study
        flats = [params_of(study.arms[arm]) for arm in study.fixed]
        shared = dict(set.intersection(*(set(flat.items()) for flat in flats)))
        wanted = Wanted(
            level="sweep",
            name=(study.name, study.settings),
            tags={NOTE_TAG: note[:MAX_TAG], "dataset": self._dataset(study.fixed[0])},
            first_tags=self._tags,
            params={path: value for path, value in shared.items() if path != "seed"},
        )
        entry = experiment.bring(self._titled(wanted, study.name))
        self._tell_data(entry, study.fixed[0])
        experiment.attach(entry, folder)
        experiment.set_status(entry, "FINISHED")

    def _experiment(self) -> Experiment:
        if self._opened is None:
            study = self.study
            experiment = Experiment.open(
                self.uri,
                study.name,
                artifact_location=self._artifact_location,
                owner=self._owner,
            )
            experiment.tag({NOTE_TAG: study.description, **self._views(experiment)})
            adopted = [self._adopt(experiment, arm) for arm in study.fixed]
            if all(adopted):
                former = experiment.entries.get(("sweep", (study.name, "")))
                if former is not None:
                    experiment.rename(former, (study.name, study.settings))
            self._opened, self.experiment_id = experiment, experiment.experiment_id
            self._record_experiment(self.experiment_id)
        return self._opened

    @property
    def _compared(self) -> str:
        """The metric by which MLflow sorts the arms: the objective of a search, or the headline."""
        search = self.study.search
        return self.study.headline if search is None else search.strategy.objectives[0]

    @property
    def _readout(self) -> Readout:
        """The read-out of logged values; points of a search always use the last epoch."""
        return self.study.readout if self.study.search is None else Last()

    def _views(self, experiment: Experiment) -> dict[str, str]:
        """Return the tags that store the study's MLflow views; settings that vary are columns."""
        study, metric = self.study, self._compared
        headline = headline_name(metric, self._readout)
        is_lower_better = study.problem.metric(metric).is_lower_better
        arms = [entry for entry in experiment.entries.values() if entry.level == "config"]
        params = dict.fromkeys(study.varying())
        for path in sorted({path for arm in arms for path in arm.params}):
            if len({arm.params.get(path) for arm in arms}) > 1:
                params[path] = None
        said = {name for arm in arms for name in arm.tags}
        return {
            PRIMARY_TAG: headline,
            PRIMARY_IS_GREATER_BETTER_TAG: str(not is_lower_better),
            **view_tags(
                metric=headline,
                is_lower_better=is_lower_better,
                metrics=sorted({name for arm in arms for name in arm.metric_names}),
                results=sorted(
                    (name for name in study.problem.metrics if name in said),
                    key=lambda name: name != metric,
                ),
                params=[path for path in params if path not in study.problem.keying.never],
            ),
        }

    def _adopt(self, experiment: Experiment, arm: str) -> bool:
        """Reuse an older run without a `config_id` for an arm, if it is a run of that arm."""
        former = experiment.entries.get(("config", (arm, "")))
        if former is None:
            return False
        if not all(self._is_of(child, arm) for child in experiment.children(former)[:1]):
            return False
        experiment.clear(former)  # the step of its means was the number of seeds
        experiment.rename(former, (arm, self._names.config_id(arm)))
        return True

    def _is_of(self, child: LoggedRun, arm: str) -> bool:
        """Return True if a run has the configuration of an arm, at the run's own seed."""
        return self._names.keys_at(int(child.tags["seed"]))[arm] == child.tags["run_key"]

    def _bring_arm(self, arm: str) -> LoggedRun:
        experiment, wanted = self._experiment(), self._wanted_arm(arm)
        if wanted.identity not in experiment.entries:
            self._adopt(experiment, arm)
        return experiment.bring(wanted)

    def _wanted_arm(self, arm: str, tags: Mapping[str, str] | None = None) -> Wanted:
        params = params_of(self.study.arms[arm])
        wanted = Wanted(
            level="config",
            name=(arm, self._names.config_id(arm)),
            tags={**self._grouping_tags(arm), **(tags or {})},
            first_tags={**self._tags, "outcome": "missing"},
            params={path: value for path, value in params.items() if path != "seed"},
        )
        return self._titled(wanted, arm)

    def _wanted_seed(self, progress: RunProgress, parent: LoggedRun) -> Wanted:
        run, epochs = progress.run, progress.epochs
        environment = {f"environment.{k}": value for k, value in progress.environment.items()}
        cost = problem_of(run.config).cost
        leaves = progress.is_complete and cost.prediction_bytes(run.config) > 0
        predictions = prediction_name(stage_keys(run.config)[-1]) if leaves else ""
        return Wanted(
            level="seed",
            name=(run.key,),
            tags={
                **self._grouping_tags(run.arm),
                **environment,
                NAME_TAG: f"{parent.tags[NAME_TAG]} seed={run.seed}",
                NOTE_TAG: progress.failure[:MAX_TAG],
                PARENT_TAG: parent.run_id,
                "seed": str(run.seed),
                "position": str(self._names.positions[run.key]),
                "outcome": progress.outcome,
                **({PREDICTIONS_TAG: predictions} if predictions else {}),
            },
            first_tags={**self._tags, "outcome": "missing"},
            params=params_of(run.config),
            started_at_ms=epochs[0][1].stored_at_ms if epochs else None,
        )

    def _titled(self, wanted: Wanted, title: str) -> Wanted:
        """Give an untitled run a title, with the settings that differ from a namesake."""
        entries = self._experiment().entries
        if wanted.identity in entries and NAME_TAG in entries[wanted.identity].tags:
            return wanted
        namesakes = [
            entry
            for (level, name), entry in entries.items()
            if level == wanted.level and name[0] == wanted.name[0] and name != wanted.name
        ]
        if namesakes:
            differing = [
                f"{path.rpartition('.')[2]}={value}"
                for path, value in wanted.params.items()
                if namesakes[0].params.get(path) != value
            ]
            title += f" ({' '.join(differing[:_MAX_DIFFERENCES])})" if differing else ""
        return replace(wanted, tags={**wanted.tags, NAME_TAG: title})

    def _grouping_tags(self, arm: str) -> dict[str, str]:
        """Return the tags by which MLflow's table groups runs."""
        said = dict.fromkeys(self.study.tags_of(arm), str(True))
        return {"study": self.study.name, "arm": arm, "dataset": self._dataset(arm), **said}

    def _tell_data(self, entry: LoggedRun, arm: str) -> None:
        name = self._dataset(arm)
        if checksums := self._data_checksums.get(name):
            self._experiment().tell_data(entry, name, checksums)

    def _dataset(self, arm: str) -> str:
        return self.study.problem.comparing.dataset(self.study.arms[arm])
