"""Tune: train one configuration of a study as a trainable of a user's own Ray Tune `Tuner`.

Use `mixsweep run` for studies: it stores results, pairs seeds and resumes. This module is for
schedulers, searchers and callbacks of Ray Tune. Its trials are not stored in any home.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mixsweep.api import Reference, read_study
from mixup_core.addresses import local_path
from mixup_core.config.building import with_values
from mixup_core.problem import Config, Process, problem_of
from mixup_core.records import EpochRecord
from sweeps.running.attempt import prepare_process

# Frozen: files of a checkpoint, from which Ray Tune continues a trial later;
# tests/mixsweep/test_tune.py fails.
_STATE, _RECORDS = "state.bin", "records.json"


def trainable(
    study: Reference,
    arm: str,
    *overrides: str,
    test: bool = False,
    data: str | Path | None = None,
    checkpoint_every: int = 1,
) -> Callable[[Mapping[str, Any]], None]:
    """Return a trainable (function) for `ray.tune.Tuner`, which trains one arm of a study.

    A trial's configuration (`param_space`) maps dotted paths, and `seed`, to values: for example
    `{"mix.law.alpha": tune.loguniform(0.1, 4), "seed": 0}`. Each evaluated epoch is one report,
    with train and validation metrics as fractions, and `epoch`, counted from 1. A trial trains on a
    GPU if `tune.with_resources` reserves one. An interrupted or cloned trial continues from its
    last checkpoint. Plugins must be installed packages, which Ray's workers can import.

    A scheduler that stops trials at early epochs prefers configurations that learn fast at first,
    such as plain training and early switches; `mixsweep run` prunes between seeds instead.

    Args:
        study: Name of a bundled study, the path of a study file, or a mapping with its keys.
        arm: Name of the arm to start from.
        overrides: `PATH=VALUE` texts, as for `--set`, such as `"base.data.val_size=200"`.
        test: If True, load test images and report `test/*` too. Do not select by them. Problems
            that do not hide test results from searches always report them.
        data: Folder of the datasets; None for MIXSWEEP_DATA or the default folder.
        checkpoint_every: Number of reports from one checkpoint to the next; 0 for none.

    Raises:
        StudyError: If the study is invalid.
        ValueError: If the study has no such arm, the arm learns from a teacher, or `test` is False
            and the arm has no validation images.

    Example:
        >>> from mixsweep.tune import trainable
        >>> trainable("digits", "uniform", "base.data.val_size=200").__name__
        'digits uniform'
    """
    loaded = read_study(study, *overrides)
    if arm not in loaded.arms:
        raise ValueError(
            f"study {loaded.name} has no arm {arm!r}; its arms are {', '.join(loaded.arms)}"
        )
    if any(run.teacher is not None for run in loaded.runs_of(arm)):
        raise ValueError(f"arm {arm} learns from a teacher, which only `mixsweep run` trains")
    held_out = loaded.problem.searching.held_out
    base = loaded.arms[arm]
    if not test and held_out is not None:
        base = held_out.hidden(base)
    root = None if data is None else local_path(data)

    def train(parameters: Mapping[str, Any]) -> None:
        with_test = test or held_out is None
        _train(base, parameters, root, with_test=with_test, every=checkpoint_every)

    train.__name__ = f"{loaded.name} {arm}"
    return train


def _train(
    base: Config, parameters: Mapping[str, Any], root: Path | None, *, with_test: bool, every: int
) -> None:
    """Train one trial in this process, and report its evaluated epochs to Ray Tune."""
    import ray
    from ray import tune

    values = dict(parameters)
    seed = values.pop("seed", base.seed)
    problem = problem_of(base)
    config = problem.randomness.at_seed(with_values(base, values), seed)
    if (reason := next(problem.reading.unfit(config, (seed,)), None)) is not None:
        raise reason
    prepare_process()
    # Ray does not hide GPUs from trials that reserved none.
    process = problem.start(config, root, "cuda" if ray.get_gpu_ids() else "cpu")
    if (checkpoint := tune.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            _load(process, Path(folder))
    reports = 0
    for record in process:
        metrics = {
            name: value
            for name, value in record.metrics.items()
            if with_test or not name.startswith("test/")
        }
        if metrics.keys().isdisjoint(problem.headline):  # this epoch is not evaluated
            continue
        reports += 1
        metrics["epoch"] = record.epoch + 1
        if every and reports % every == 0:
            with tempfile.TemporaryDirectory() as folder:
                _save(process, Path(folder))
                tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))
        else:
            tune.report(metrics)


def _save(process: Process, folder: Path) -> None:
    records = [{"epoch": r.epoch, "metrics": dict(r.metrics)} for r in process.records]
    (folder / _STATE).write_bytes(process.to_bytes())
    (folder / _RECORDS).write_text(json.dumps(records))


def _load(process: Process, folder: Path) -> None:
    stored = json.loads((folder / _RECORDS).read_text())
    process.load_bytes((folder / _STATE).read_bytes(), [EpochRecord(**record) for record in stored])
