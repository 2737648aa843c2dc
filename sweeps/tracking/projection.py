"""Projection: how a study looks in MLflow.

The store is the truth. An empty MLflow is filled from it, only missing rows are sent, and a run in
MLflow that contradicts it is replaced.
"""

import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from mixup_core.keys import stage_keys
from mixup_core.problem import Config, problem_of
from mixup_core.store.names import prediction_name
from mixup_core.tree.written_forms import flatten, plugins_of
from sweeps.state.results import Outcome
from sweeps.study.readouts import Last, Readout
from sweeps.study.study import Run, Study
from sweeps.tracking.experiment import (
    HOME,
    MAX_TAG,
    MODEL_TAG,
    NAME_TAG,
    NOTE_TAG,
    PARENT_TAG,
    Experiment,
    LoggedRun,
    Status,
    Wanted,
)
from sweeps.tracking.links import PRIMARY_IS_GREATER_BETTER_TAG, PRIMARY_TAG, view_tags
from sweeps.tracking.networks import export_network
from sweeps.tracking.progress import Row, RunProgress, epochs_of
from sweeps.tracking.summaries import Summarise, curves, headline_name, headline_row, texts

PREDICTIONS_TAG = "predictions"
"""Tag for the place of a finished run's logits in the store; they may be pruned later."""
_MAX_DIFFERENCES = 3

_logger = logging.getLogger(__name__)


class Projection:
    """One study in MLflow. Each method calls MLflow and raises `MlflowException` when it cannot.

    Each can be called again, and then changes nothing. There must be one projection at a time per
    study: the driver's, or that of a command which holds the study's lease.
    """

    uri: str
    """The tracking address."""

    def __init__(  # noqa: PLR0913  what a projection is of, and what it says beside
        self,
        study: Study,
        uri: str,
        *,
        summarise: Summarise,
        artifact_location: str | None = None,
        tags: Mapping[str, str] | None = None,
        data_checksums: Mapping[str, Mapping[str, str]] | None = None,
        owner: str = HOME,
    ) -> None:
        """Describe the projection; MLflow is opened by the first method that needs it.

        Args:
            study: Decides the arms, and how many seeds each should have.
            uri: The tracking address.
            summarise: Gives the metrics of an arm.
            artifact_location: Where artifacts go when the address is a database; None where a
                server decides.
            tags: Set on each run when it is created: commit, dirty, submission_id.
            data_checksums: Data set to file to checksum.
            owner: Whose runs these are, where others write to the same server.
        """
        self._owner = owner
        self.grow(study)
        self.uri = uri
        self._summarise = summarise
        self._artifact_location = artifact_location
        self._tags = dict(tags or {})
        self._data_checksums = dict(data_checksums or {})
        self._opened: Experiment | None = None

    @property
    def study(self) -> Study:
        """The study, as far as it has grown."""
        return self._plan.study

    def grow(self, study: Study) -> None:
        """Go on with a study that has gained arms."""
        self._plan = _Plan(study)

    def forget(self) -> None:
        """Read MLflow again before the next write, since a failed write may have arrived."""
        self._opened = None

    def reconcile_run(self, progress: RunProgress) -> None:
        """Bring MLflow to what is known of a run, and to its arm if that is not there yet.

        A run that never began is not in MLflow.
        """
        experiment = self._experiment()
        parent = self._bring_arm(progress.run.arm)
        wanted = self._wanted_seed(progress, parent)
        has_begun = progress.outcome != "missing" or progress.is_live
        if not has_begun and wanted.identity not in experiment.entries:
            return
        entry = experiment.bring(
            wanted,
            partial(_missing, progress.rows(), progress.is_live),
        )
        if progress.is_live:
            experiment.set_status(entry, "RUNNING")
        else:
            ended_at_ms = progress.epochs[-1][1].stored_at_ms if progress.epochs else None
            experiment.set_status(entry, _STATUS[progress.outcome], ended_at_ms)
            entry.rows = None  # read again if they are ever needed

    def reconcile_arm(self, arm: str, seeds: Sequence[RunProgress]) -> None:
        """Bring an arm to what its seeds say, those included that the study does not ask for now.

        Its metrics are over all of its seeds or not there: what is known of some of them is said by
        tags, and metrics of the seeds that it had stay until more are complete.

        Args:
            arm: Its name.
            seeds: Of the runs that the study has of it, as far as they are known.
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
            if is_damaged or (not is_complete and arm in study.own_seeds):
                experiment.drop(child)  # a point that was pruned has lost seeds
            elif is_complete:
                others.append(child)
        complete = {str(p.run.seed): p.epochs for p in seeds if p.is_complete}
        complete |= {child.tags["seed"]: epochs_of(experiment.rows(child)) for child in others}
        expected = len(asked) + len(others)
        outcome = _arm_outcome({p.outcome for p in seeds}, is_known=len(seeds) == len(asked))
        tags = {"outcome": outcome, "n": f"{len(complete)}/{expected}"}
        rows: list[Row] = []
        if complete:
            runs = list(complete.values())
            of = study.problem, study.readout, self._summarise, study.lead
            tags |= texts(runs, expected, *of)
            if len(complete) == expected:
                tags["seeds"] = _fitting(sorted(complete, key=int))
                rows = list(curves(runs, study.problem, self._summarise, study.lead))
                row = headline_row(runs, self._compared, self._readout, self._summarise)
                rows += [] if row is None else [row]
        children = experiment.children(entry)
        if not complete.keys() >= set(entry.tags.get("seeds", "").split()):
            experiment.drop(entry)  # its metrics are of seeds that the store has lost
        missing = partial(_superseding, rows) if rows else None
        entry = experiment.bring(self._wanted_arm(arm, tags), missing)
        for child in children:
            experiment.write(child, tags={PARENT_TAG: entry.run_id})
        is_live = any(progress.is_live for progress in seeds)
        experiment.set_status(entry, "RUNNING" if is_live else _STATUS[outcome])
        self._tell_data(entry, arm)
        experiment.tag(self._views(experiment))

    def settle(self) -> None:
        """Mark every run of the study that is still RUNNING as ended."""
        experiment = self._experiment()
        for entry in experiment.entries.values():
            if entry.status == "RUNNING":
                experiment.set_status(entry, "KILLED")
        experiment.tag(self._views(experiment))

    def log_model(self, run: Run, state: bytes) -> None:
        """Give a run of the study its trained network, if it is in MLflow and has none yet.

        Args:
            run: A finished run of a problem that trains networks.
            state: Its last state.
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
            except Exception as error:  # what torch cannot trace must not keep the rest from MLflow
                _logger.warning("no model of %s seed %s: %s", run.arm, run.seed, error)
                return
            experiment.log_model(entry, described, folder)

    def log_report(self, folder: Path, note: str) -> None:
        """Attach a report to the study.

        Args:
            folder: All files in it become artifacts.
            note: Markdown, shown when the run of level `sweep` is opened; cut to the length that
                MLflow takes.
        """
        experiment, study = self._experiment(), self.study
        flats = [_spelled(study.arms[arm]) for arm in study.fixed]
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
            self._opened = experiment
        return self._opened

    @property
    def _compared(self) -> str:
        """The metric that arms are sorted by."""
        search = self.study.search
        return self.study.headline if search is None else search.strategy.objectives[0]

    @property
    def _readout(self) -> Readout:
        """Read-out that is logged; points of a search use the last epoch."""
        return self.study.readout if self.study.search is None else Last()

    def _views(self, experiment: Experiment) -> dict[str, str]:
        """Return the views of the study's pages, from the settings in which its arms differ."""
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
        """Let an arm's run from before configurations had names stand for it, if it is its own."""
        former = experiment.entries.get(("config", (arm, "")))
        if former is None:
            return False
        if not all(self._is_of(child, arm) for child in experiment.children(former)[:1]):
            return False
        experiment.clear(former)  # its means stood at the number of seeds, not of epochs
        experiment.rename(former, (arm, self._plan.config_id(arm)))
        return True

    def _is_of(self, child: LoggedRun, arm: str) -> bool:
        """Return whether a run has the configuration of an arm, at the seed that it names."""
        return self._plan.keys_at(int(child.tags["seed"]))[arm] == child.tags["run_key"]

    def _bring_arm(self, arm: str) -> LoggedRun:
        experiment, wanted = self._experiment(), self._wanted_arm(arm)
        if wanted.identity not in experiment.entries:
            self._adopt(experiment, arm)
        return experiment.bring(wanted)

    def _wanted_arm(self, arm: str, tags: Mapping[str, str] | None = None) -> Wanted:
        params = _spelled(self.study.arms[arm])
        wanted = Wanted(
            level="config",
            name=(arm, self._plan.config_id(arm)),
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
                "position": str(self._plan.positions[run.key]),
                "outcome": progress.outcome,
                **({PREDICTIONS_TAG: predictions} if predictions else {}),
            },
            first_tags={**self._tags, "outcome": "missing"},
            params=_spelled(run.config),
            started_at_ms=epochs[0][1].stored_at_ms if epochs else None,
        )

    def _titled(self, wanted: Wanted, title: str) -> Wanted:
        """Name a run that has no name yet: for what it is, and what tells it from a namesake."""
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
        """Return the tags that group MLflow's table; a run without them leaves its group."""
        said = dict.fromkeys(self.study.tags_of(arm), str(True))
        return {"study": self.study.name, "arm": arm, "dataset": self._dataset(arm), **said}

    def _tell_data(self, entry: LoggedRun, arm: str) -> None:
        name = self._dataset(arm)
        if checksums := self._data_checksums.get(name):
            self._experiment().tell_data(entry, name, checksums)

    def _dataset(self, arm: str) -> str:
        return self.study.problem.dataset(self.study.arms[arm])


class _Plan:
    """A study, and what its runs and arms are called in MLflow."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._keys: dict[int, Mapping[str, str]] = {}

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Run key to place among the study's runs."""
        return {run.key: index for index, run in enumerate(self.study.runs())}

    def config_id(self, arm: str) -> str:
        """Return the name of an arm's configuration, whatever its seeds are."""
        return self.keys_at(0)[arm]

    def keys_at(self, seed: int) -> Mapping[str, str]:
        """Return the run key of each arm at a seed, which the study need not have."""
        if seed not in self._keys:
            self._keys[seed] = self.study.keys_at(seed)
        return self._keys[seed]


_STATUS: Mapping[Outcome, Status] = {
    "complete": "FINISHED",
    "failed": "FAILED",
    "diverged": "FAILED",
    "partial": "KILLED",
    "missing": "KILLED",
}
"""Status of a run that no driver trains."""


def _missing(rows: Sequence[Row], is_live: bool, known: Sequence[Row]) -> list[Row] | None:
    """Return the rows whose metric has none at their step; sending one again is slow.

    None if MLflow knows a value, or the time of one, that the store has not. Damaged epochs that
    were trained again have the values they had, at times of their own. A run in training may not
    have said yet what it shares with another.
    """
    if not is_live and not set(known) <= set(rows):
        return None
    present = {(row.name, row.step) for row in known}
    return [row for row in rows if (row.name, row.step) not in present]


def _superseding(rows: Sequence[Row], known: Sequence[Row]) -> list[Row] | None:
    """Return the rows of a summary that say something new.

    None if MLflow would go on showing something else than the last of them.
    """
    said = {(row.name, row.step, row.value) for row in known}
    new = [row for row in rows if (row.name, row.step, row.value) not in said]
    shown = {row.name: row for row in sorted((*known, *new))}
    wanted = {row.name: row for row in sorted(rows)}
    if any(shown[name].value != row.value for name, row in wanted.items()):
        return None
    return new


def _arm_outcome(outcomes: set[Outcome], *, is_known: bool) -> Outcome:
    """Return the outcome that decides for an arm."""
    if "failed" in outcomes:
        return "failed"
    if "diverged" in outcomes:
        return "diverged"
    if not is_known:
        return "partial" if outcomes - {"missing"} else "missing"
    return outcomes.pop() if len(outcomes) == 1 else "partial"


def _fitting(seeds: Iterable[str]) -> str:
    """Return as many seeds as a tag holds."""
    text = " ".join(seeds)
    return text if len(text) <= MAX_TAG else text[:MAX_TAG].rpartition(" ")[0]


def _spelled(config: Config) -> dict[str, str]:
    """Return the params of a configuration, without those that change no number."""
    never = problem_of(config).keying.never
    params = {
        path: str(value)
        for path, value in flatten(config).items()
        if value is not None and path not in never
    }
    plugins = " ".join(f"{name}@{digest}" for name, digest in plugins_of(config).items())
    return params | ({"plugins": plugins} if plugins else {})
