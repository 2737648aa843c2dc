"""Study log: writes the results of one study to MLflow; the store, not MLflow, is the truth.

A run in MLflow has a tag with a hash of what was written to it. A run with another hash than the
stored results have is deleted and written again; a run without one, because the process that wrote
it was killed, gets all rows again, and MLflow keeps equal rows once.
"""

import hashlib
import json
import logging
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mixup_core.config.written_forms import flatten, plugins_of
from mixup_core.keys import stage_keys
from mixup_core.problem import Config, problem_of
from mixup_core.store.local_files import share_below
from mixup_core.store.manifests import prediction_name
from sweeps.state.results import Outcome
from sweeps.study.readouts import Last, Readout
from sweeps.study.study import Run, Study
from sweeps.tracking.experiment import (
    CONTENT_TAG,
    HOME,
    NAME_TAG,
    NOTE_TAG,
    PARENT_TAG,
    Entry,
    Experiment,
    Level,
    Status,
    upload_network,
)
from sweeps.tracking.links import view_tags
from sweeps.tracking.rows import (
    Row,
    RunProgress,
    Summarise,
    curves,
    digest_of,
    headline_name,
    headline_row,
    rows_of,
    texts,
)

MODEL_TAG = "model"
"""Tag with the address of a run's trained network, for `mlflow.pytorch.load_model`."""
PREDICTIONS_TAG = "predictions"
"""Tag with the place of a finished run's predictions in the store; these may be deleted later."""
_STATUSES: Mapping[Outcome, Status] = {
    "complete": "FINISHED",
    "failed": "FAILED",
    "diverged": "FAILED",
    "partial": "KILLED",
    "missing": "KILLED",
}
"""Status in MLflow of a run that no driver is training, by outcome of the run."""
_MAX_DIFFERENCES = 3
_LONGEST_TITLE = 200
"""Largest number of characters of a title: a database server has 250 for a name, which for a run
also names the seed."""
_LONGEST_SOURCE = 65_535
"""Largest number of characters that MLflow accepts in the source of a dataset."""
_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#f0e442",
)  # fmt: skip
"""Colours of the arms' curves in MLflow: those that Okabe and Ito chose for all kinds of sight."""

_logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)  # the address may have a password
class StudyLog:
    """Writes one study to MLflow; its methods raise `MlflowException` if MLflow fails.

    Each method can be repeated. Only one process at a time may write a study: its driver, or a
    command that has the study's lease.
    """

    study: Study
    """The study, with all arms that a search has added so far."""
    uri: str
    """The tracking address: URL of an MLflow server or of a database."""
    summariser: Callable[[Study, str], Summarise]
    artifact_location: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    data_checksums: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    owners: Sequence[str] = (HOME,)
    others: Collection[str] = ()
    """Other settings of the study, and keys of runs that only these have; `delete_all` keeps them.
    """
    _opened: Experiment | None = field(default=None, init=False)

    def forget(self) -> None:
        """Discard what is known of MLflow's content, so that it is read before the next write."""
        self._opened = None

    def delete_all(self) -> None:
        """Move the runs of the study that this store wrote to MLflow's trash; keep `others`."""
        experiment = self._experiment()
        entries = list(experiment.entries.values())
        kept = {entry.run_id for entry in entries if entry.identity[1][-1] in self.others}
        kept |= {entry.tags.get(PARENT_TAG, "") for entry in entries if entry.run_id in kept}
        for entry in entries:
            if entry.run_id not in kept:
                experiment.drop(entry)

    def write_run(self, progress: RunProgress) -> None:
        """Write new results of a run; first create the MLflow run of its arm, if it is missing."""
        experiment = self._experiment()
        parent = self._bring_arm(progress.run.arm)
        if not progress.has_begun:
            return
        earlier = experiment.entries.get(("seed", (progress.run.key,)))
        if earlier is not None and not _rows_agree(earlier, progress):
            experiment.drop(earlier)
        entry = self._bring_seed(progress, parent)
        content = f"{digest_of(rows_of(progress.epochs))} {len(progress.epochs)}"
        is_written = entry.tags.get(CONTENT_TAG) == content
        if not is_written:
            rows = rows_of(progress.epochs)
            experiment.write(entry, rows=rows, tags={CONTENT_TAG: ""} if progress.is_live else {})
        if progress.is_live:
            experiment.end(entry, "RUNNING")
            return
        ended_at_ms = progress.epochs[-1][1].stored_at_ms if progress.epochs else None
        experiment.end(entry, _STATUSES[progress.outcome], ended_at_ms)
        # Order matters: rows, then their hash. Otherwise a kill between them would leave a run that
        # lacks rows for good; tests/sweeps/tracking/test_study_log.py fails.
        experiment.write(entry, tags={CONTENT_TAG: content})
        entry.sent.clear()

    def write_arm(self, arm: str, seeds: Sequence[RunProgress]) -> None:
        """Update the run of an arm; its mean and interval follow once all seeds are complete."""
        experiment, study = self._experiment(), self.study
        expected = len(study.runs_of(arm))
        complete = {p.run.seed: p.epochs for p in seeds if p.is_complete}
        outcomes = {p.outcome for p in seeds}
        outcome = _arm_outcome(outcomes, is_known=len(seeds) == expected)
        tags = {"outcome": outcome, "n": f"{len(complete)}/{expected}"}
        rows: list[Row] = []
        if "diverged" in outcomes:  # as in reports: the mean of the other seeds would be too good
            tags |= dict.fromkeys(self._bring_arm(arm).tags.keys() & study.problem.metrics, "")
        elif complete:
            runs = list(complete.values())
            summarise = self.summariser(study, arm)
            tags |= texts(runs, expected, study.problem, study.readout, summarise, study.lead)
            if len(complete) == expected:
                tags["seeds"] = " ".join(map(str, sorted(complete)))
                rows = list(curves(runs, study.problem, summarise, study.lead))
                row = headline_row(runs, self._compared, self._readout, summarise)
                rows += [] if row is None else [row]
        content = digest_of(rows, tags)
        entry = self._bring_arm(arm)
        if entry.tags.get(CONTENT_TAG, content) != content:
            # MLflow shows the latest value of a metric, and that of fewer seeds is not the latest.
            written = entry.tags.get("n", "0/0").partition("/")[0]
            if not written.isdigit() or int(written) > len(complete):
                entry = self._replace_arm(experiment, entry, arm)
        experiment.write(entry, rows=rows, tags={**tags, CONTENT_TAG: content})
        is_live = any(progress.is_live for progress in seeds)
        experiment.end(entry, "RUNNING" if is_live else _STATUSES[outcome])
        experiment.tag(self._views(experiment))

    def write_network(self, run: Run, state: bytes) -> None:
        """Upload the network of a run in MLflow; one that cannot be exported is skipped."""
        experiment = self._experiment()
        entry = experiment.entries.get(("seed", (run.key,)))
        if entry is None or MODEL_TAG in entry.tags:
            return
        try:
            network, example = self.study.problem.trained(run.config, state)
            address = upload_network(experiment, entry, network, example)
            self._share_artifacts()
        except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
            _logger.warning(
                "MLflow gets no model of %s seed %s, for the network cannot be exported: %s",
                run.arm, run.seed, error,
            )  # fmt: skip
            return
        experiment.write(entry, tags={MODEL_TAG: address})

    def write_report(self, folder: Path, note: str) -> None:
        """Upload a study's report to MLflow, as artifacts of the MLflow run of the whole study."""
        experiment, study = self._experiment(), self.study
        flats = [params_of(study.arms[arm]) for arm in study.fixed]
        shared = dict(set.intersection(*(set(flat.items()) for flat in flats)))
        shared.pop("seed", None)
        title = self._title("sweep", (study.name, study.settings), study.name, shared)
        entry = experiment.bring(
            "sweep",
            (study.name, study.settings),
            {NOTE_TAG: note, NAME_TAG: title, "dataset": self._dataset(study.fixed[0])},
            first_tags=self.tags,
            params=shared,
        )
        experiment.client.log_artifacts(entry.run_id, str(folder))
        with tempfile.TemporaryDirectory() as scratch:
            whole = Path(scratch) / "description.md"  # MLflow cuts the text of a tag
            whole.write_text(study.description, encoding="utf-8")
            experiment.client.log_artifact(entry.run_id, str(whole))
        self._share_artifacts()
        experiment.end(entry, "FINISHED")

    def _share_artifacts(self) -> None:
        if (self.artifact_location or "").startswith("file:"):
            share_below(Path(url2pathname(urlsplit(str(self.artifact_location)).path)))

    def _experiment(self) -> Experiment:
        if self._opened is None:
            experiment = Experiment.open(
                self.uri,
                self.study.name,
                artifact_location=self.artifact_location,
                owners=self.owners,
            )
            experiment.tag({NOTE_TAG: self.study.description, **self._views(experiment)})
            self._opened = experiment
        return self._opened

    def _bring_arm(self, arm: str) -> Entry:
        config = self.study.arms[arm]
        params = {path: value for path, value in params_of(config).items() if path != "seed"}
        name = (arm, self.study.keys_at(0)[arm])
        experiment = self._experiment()
        is_new = ("config", name) not in experiment.entries
        entry = experiment.bring(
            "config",
            name,
            {**self._grouping_tags(arm), NAME_TAG: self._title("config", name, arm, params)},
            first_tags={**self.tags, "outcome": "missing"},
            params=params,
        )
        if is_new:
            self._log_data(experiment, entry, arm)
        return entry

    def _replace_arm(self, experiment: Experiment, entry: Entry, arm: str) -> Entry:
        experiment.drop(entry)
        anew = self._bring_arm(arm)
        for child in experiment.entries.values():
            if child.tags.get(PARENT_TAG) == entry.run_id:
                experiment.write(child, tags={PARENT_TAG: anew.run_id})
        return anew

    def _bring_seed(self, progress: RunProgress, parent: Entry) -> Entry:
        run, epochs = progress.run, progress.epochs
        environment = {f"environment.{k}": value for k, value in progress.environment.items()}
        has_predictions = problem_of(run.config).cost.prediction_bytes(run.config) > 0
        if progress.is_complete and has_predictions:
            environment[PREDICTIONS_TAG] = prediction_name(stage_keys(run.config)[-1])
        return self._experiment().bring(
            "seed",
            (run.key,),
            {
                **self._grouping_tags(run.arm),
                **environment,
                NAME_TAG: f"{parent.tags[NAME_TAG]} seed={run.seed}",
                "mlflow.runColor": _COLOURS[list(self.study.arms).index(run.arm) % len(_COLOURS)],
                NOTE_TAG: progress.failure,
                PARENT_TAG: parent.run_id,
                "seed": str(run.seed),
                "outcome": progress.outcome,
            },
            first_tags=self.tags,
            params=params_of(run.config),
            started_at_ms=epochs[0][1].stored_at_ms if epochs else None,
        )

    def _title(
        self, level: Level, name: tuple[str, ...], title: str, params: Mapping[str, str]
    ) -> str:
        """Return a title; a run with a namesake of other settings gets those that differ."""
        entries = self._experiment().entries
        if (level, name) in entries:
            return entries[level, name].tags.get(NAME_TAG, title)
        for (kind, other_name), entry in entries.items():
            if kind == level and other_name[0] == name[0]:
                differing = [
                    f"{path.rpartition('.')[2]}={value}"
                    for path, value in params.items()
                    if entry.params.get(path) != value
                ]
                return " ".join([title, *differing[:_MAX_DIFFERENCES]])[:_LONGEST_TITLE]
        return title

    def _grouping_tags(self, arm: str) -> dict[str, str]:
        """Return the tags by which MLflow's table groups runs."""
        marks = dict.fromkeys(self.study.tags_of(arm), str(True))
        return {"study": self.study.name, "arm": arm, "dataset": self._dataset(arm), **marks}

    def _log_data(self, experiment: Experiment, entry: Entry, arm: str) -> None:
        """Log the dataset of an arm as an input of its run, with checksums of its files."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        name = self._dataset(arm)
        if checksums := self.data_checksums.get(name):
            source = json.dumps({"tags": dict(checksums)}, sort_keys=True)
            digest = hashlib.sha256(source.encode()).hexdigest()[:32]
            if len(source) > _LONGEST_SOURCE:
                source = json.dumps({"tags": {f"digest of {len(checksums)} files": digest}})
            dataset = Dataset(name=name[:500], digest=digest, source_type="code", source=source)
            context = InputTag("mlflow.data.context", "training and evaluation")
            experiment.client.log_inputs(entry.run_id, [DatasetInput(dataset, [context])])

    def _dataset(self, arm: str) -> str:
        return self.study.problem.comparing.dataset(self.study.arms[arm])

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
        arms = [entry for (level, _), entry in experiment.entries.items() if level == "config"]
        params = dict.fromkeys(study.varying())
        for path in sorted({path for arm in arms for path in arm.params}):
            if len({arm.params.get(path) for arm in arms}) > 1:
                params[path] = None
        tag_names = {name for arm in arms for name in arm.tags}
        return view_tags(
            metric=headline_name(metric, self._readout),
            is_lower_better=study.problem.metric(metric).is_lower_better,
            results=sorted(
                (name for name in study.problem.metrics if name in tag_names),
                key=lambda name: name != metric,
            ),
            params=[path for path in params if path not in study.problem.keying.never],
        )


def params_of(config: Config) -> dict[str, str]:
    """Return what affects results as MLflow params: values by dotted path, and plugins."""
    never = problem_of(config).keying.never
    params = {
        path: str(value)
        for path, value in flatten(config).items()
        if value is not None and path not in never
    }
    plugins = " ".join(f"{name}@{digest}" for name, digest in plugins_of(config).items())
    return params | ({"plugins": plugins} if plugins else {})


def _rows_agree(entry: Entry, progress: RunProgress) -> bool:
    """Return False if a run in MLflow has other rows than the store has for the same epochs.

    Compares the hash in the run's tag with a hash of the stored rows. Notes the rows that MLflow
    has already in `entry.sent`, so that only newer ones are sent.
    """
    if entry.sent:  # epochs that were damaged are trained again, and stored with other times
        return progress.is_live or entry.sent <= {*rows_of(progress.epochs)}
    digest, _, count = entry.tags.get(CONTENT_TAG, "").partition(" ")
    if not digest:
        return True  # the process that wrote it was killed
    first = rows_of(progress.epochs[: int(count)]) if count.isdigit() else []
    if digest != digest_of(first):
        return False
    if len(progress.epochs) > int(count):
        entry.sent.update(first)
    return True


def _arm_outcome(outcomes: set[Outcome], *, is_known: bool) -> Outcome:
    """Return the outcome of an arm from those of its seeds; `is_known` if all of them are known."""
    for worst in ("failed", "diverged"):
        if worst in outcomes:
            return worst
    if not is_known:
        return "partial" if outcomes - {"missing"} else "missing"
    return next(iter(outcomes)) if len(outcomes) == 1 else "partial"
