"""Provenance: code, versions, machines and data behind a report, as stored in `provenance.json`."""

import hashlib
import json
import os
import platform
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mixup_core.addresses import without_secrets
from mixup_core.config.written_forms import flatten, origins_in
from mixup_core.keys import NUMERICS_VERSION
from mixup_core.numeric_settings import BEGAN_IN, differences, installed_version
from mixup_core.store.manifests import ADDED
from reports.numbers.code_origin import SOURCE, cluster_job, describe_code, spell_code
from sweeps.state.results import TRIED, RunResult, ended_on_budget, spell_added
from sweeps.study.search import Search, SearchHistory
from sweeps.study.study import Study, spell_seeds

PACKAGES = (
    "mixsweep", "torch", "torchvision", "pillow", "timm", "ray", "optuna", "mlflow", "numpy",
    "scipy", "pandas", "matplotlib",
)  # fmt: skip

SETTLED = frozenset({"complete", "diverged"})
"""Outcomes of a run that a later launch does not train again by default."""


def describe(  # noqa: PLR0913  each is a source of facts of its own
    study: Study,
    results: Sequence[RunResult],
    *,
    selection_rule: str,
    data_checksums: Mapping[str, Mapping[str, str]],
    command: str,
    history: SearchHistory | None = None,
    predicted: Collection[str] = (),
) -> dict[str, Any]:
    """Return the content of a report's `provenance.json`: code, versions, data, arms and runs.

    It contains no environment variables, credentials or absolute paths: a file in the working
    directory is named by its relative path, any other by the last part of its path.
    """
    times = [
        end(result.facts.stored_at_ms) for result in results if result.facts for end in (min, max)
    ]
    folders = _folders(study)
    # Frozen: keys of `provenance.json`. Later commands could not tell which results an earlier
    # report has; tests/reports/pages/test_report_folders.py fails.
    return _published(
        {
            "study": study.name,
            "settings": study.settings,
            "finished": is_finished(study, results, history),
            **({} if (reason := ended_on_budget(study, results)) is None else {"ended": reason}),
            "description": _renamed(study.description, folders),
            "command": command_elsewhere(command),
            "selection_rule": selection_rule,
            "seeds": list(study.seeds),
            "numerics_version": NUMERICS_VERSION,
            "code": describe_code(),
            "submission_id": cluster_job(),
            "constraints_sha256": _constraints_sha256(),
            "versions": {"python": platform.python_version(), **installed_versions()},
            "environments": _environments(results),
            "first_epoch_stored_at_ms": min(times, default=None),
            "last_epoch_stored_at_ms": max(times, default=None),
            "data_checksums": data_checksums,
            **({} if not (plugins := _plugins(study)) else {"plugins": plugins}),
            "source": _renamed(study.source, folders),
            **({} if study.search is None else {"search": _describe_search(study.search, history)}),
            "arms": {
                arm: {
                    path: path_elsewhere(value) if isinstance(value, str) else value
                    for path, value in flatten(config).items()
                    if path != "seed"
                }
                for arm, config in study.arms.items()
            },
            "runs": [
                {**_describe_run(result), "has_predictions": result.run.key in predicted}
                for result in results
            ],
        }
    )


def _folders(study: Study) -> frozenset[str]:
    """Return the absolute paths in the configurations of a study, such as a folder of images."""
    return frozenset(
        value
        for config in study.arms.values()
        for value in flatten(config).values()
        if isinstance(value, str) and value.startswith(os.sep)
    )


def _renamed(text: str, folders: Collection[str]) -> str:
    for folder in sorted(folders, key=len, reverse=True):
        words = map(re.escape, folder.split(" "))  # YAML breaks long lines at blanks
        text = path_elsewhere(folder).join(re.split(r"\s+".join(words), text))
    return text


def _plugins(study: Study) -> list[dict[str, Any]]:
    """Return name, version (of a package), sha256 and arms of each plugin that a study uses."""
    arms: dict[Any, list[str]] = {}
    for arm, config in study.arms.items():
        for origin in origins_in(config):
            arms.setdefault(origin, []).append(arm)
    return [
        {"plugin": o.plugin, "version": o.version, "sha256": o.digest, "arms": of_plugin}
        for o, of_plugin in arms.items()
    ]


def is_finished(
    study: Study, results: Iterable[RunResult], history: SearchHistory | None = None
) -> bool:
    """Return True if no run of a study is left to train, and its search, if any, has ended.

    A diverged run is not left to train, because it would diverge again.
    """
    if any(result.outcome not in SETTLED for result in results):
        return False
    search = study.search
    if search is None or history is None:
        return True
    if history.asks(search) or any(point.state == "open" for point in history.points):
        return False
    is_confirmed = study.confirmation() is not None or not search.strategy.confirm_seeds
    return is_confirmed or all(point.state != "complete" for point in history.points)


def _describe_search(search: Search, history: SearchHistory | None) -> dict[str, Any]:
    points = () if history is None else history.points
    return {
        "sampler": search.strategy.sampler,
        "sampler_seed": search.strategy.seed,
        "points_wanted": search.points,
        "points": dict(Counter(point.state for point in points)),
        "ended": None if history is None else history.ended,
        **({"points_known": num_known} if (num_known := sum(p.is_known for p in points)) else {}),
    }


def spell_origin(provenance: Mapping[str, Any]) -> str:
    """Return devices, torch versions and commit behind a report, as sentences of a caption."""
    environments = provenance["environments"]
    machines = sorted({spell_machine(environment) for environment in environments} - {""})
    versions = sorted({environment.get("torch", "") for environment in environments} - {""})
    machines += [f"torch {number}" for number in versions]
    code = provenance["code"]
    runs: Sequence[Mapping[str, Any]] = provenance.get("runs", ())
    added = spell_added(len(runs), [run["added"]["archive"] for run in runs if "added" in run])
    sentences = [f"Trained on {', '.join(machines)}."] if machines else []
    sentences += [] if code is None else [f"Report made at {spell_code(code)}."]
    warned = [f"WARNING, {added}, which cannot prove how they were trained."] if added else []
    return " ".join([*sentences, *_spell_mixture(environments), *_spell_apart(runs), *warned])


def _spell_apart(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a warning if arms were trained on different devices at the same seed."""
    devices: dict[int, set[str]] = {}
    for run in runs:
        devices.setdefault(run["seed"], set()).update(filter(None, [run.get("device")]))
    apart = {seed: kinds for seed, kinds in devices.items() if len(kinds) > 1}
    if not apart:
        return []
    kinds = " and ".join(sorted(set().union(*apart.values())))
    return [f"WARNING, at {spell_seeds(apart)} arms were trained on different devices: {kinds}."]


_DEVICE_BEFORE = re.compile(r"\bdevice='([^']*)'")
"""Regular expression of the device in the record of an earlier environment: a run that was moved
has the environment of its first epochs in its stages.
"""


def _spell_mixture(environments: Sequence[Mapping[str, str]]) -> list[str]:
    """Return a warning for each way in which runs of a table were trained in mixed environments."""
    noted = []
    if names := differences(*environments):
        noted.append(
            f"WARNING, runs were trained in environments that differ in {', '.join(names)}, so "
            "that paired runs may differ in rounding."
        )
    begun = [environment for environment in environments if BEGAN_IN in environment]
    if begun:
        noted.append("WARNING, a run was begun in one environment and finished in another.")
    moves = {
        f"{device} to {environment.get('device', 'an unknown device')}"
        for environment in begun
        for device in _DEVICE_BEFORE.findall(environment[BEGAN_IN])
    }
    if moves:
        noted.append(f"WARNING, a run changed its device half-way: {', '.join(sorted(moves))}.")
    return noted


def spell_machine(environment: Mapping[str, str]) -> str:
    """Return device, instruction set and settings of a machine that trained runs, as text."""
    limit = environment.get("onednn_at_most")
    settings = " ".join(
        part
        for part in environment.get("settings", "").split(" ")
        if not part.partition("=")[0].endswith("_MAX_CPU_ISA")
    )
    limited = f"oneDNN at most {limit}" if limit else ""
    parts = [environment.get("instructions", ""), limited, settings]
    within = ", ".join(filter(None, parts))
    return environment.get("device", "") + (f" ({within})" if within else "")


def public(text: str) -> str:
    """Return a text without credentials in addresses, and with `~` for the user's home folder."""
    text, home = without_secrets(text), str(Path.home())
    return text if home == os.sep else re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)


def _published(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _published_part(part) for key, part in content.items()}


def _published_part(value: Any) -> Any:
    match value:
        case str():
            return public(value)
        case Mapping():
            return _published(value)
        case list() | tuple():
            return [_published_part(part) for part in value]
        case _:
            return value


def _describe_run(result: RunResult) -> dict[str, Any]:
    failure = result.failure if result.outcome != "complete" else None
    return {
        "run_key": result.run.key,
        "arm": result.run.arm,
        "seed": result.run.seed,
        "outcome": result.outcome,
        "epochs": len(result.records),
        "epochs_expected": result.run.config.epochs,
        "attempts": result.attempts,
        **({} if result.stage is None else {"device": result.stage.environment.get("device")}),
        "error": None if failure is None else text_elsewhere(failure.message),
        "stage_key": None if result.stage is None else result.stage.key,
        "seconds": sum(result.facts.seconds),
        **({} if (added := result.addition) is None else {"added": asdict(added)}),
    }


def _environments(results: Iterable[RunResult]) -> list[dict[str, str]]:
    """Return each distinct environment that trained a stage, without run and process ids."""
    texts = {
        json.dumps(
            {k: v for k, v in result.stage.environment.items() if k not in {"pid", TRIED, ADDED}},
            sort_keys=True,
        )
        for result in results
        if result.stage is not None
    }
    return [json.loads(environment) for environment in sorted(texts)]


def installed_versions() -> dict[str, str | None]:
    """Return the version of each package that can change a number or the report, by name."""
    return {package: installed_version(package) for package in PACKAGES}


def _constraints_sha256() -> str | None:
    path = SOURCE / "constraints.txt"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


_PATH = re.compile(r"(?<![\w.:/~*-])/[^\s'\",;:{}()\[\]]*[^\s'\",;:{}()\[\].]")
"""Regular expression of an absolute path within a text."""


def path_elsewhere(path: str) -> str:
    """Return an absolute path without the folders of this machine, for a published text.

    A path in the working directory becomes relative, one in the home folder begins with `~`, and of
    any other only the last part is left. A relative path is not changed.
    """
    if not path.startswith(os.sep):
        return path
    absolute = Path(os.path.normpath(path))
    places = [(Path.home(), Path("~"))]
    with suppress(FileNotFoundError):  # the working directory was deleted
        places.insert(0, (Path.cwd(), Path()))
    for folder, start in places:
        if absolute.is_relative_to(folder) and folder != Path(folder.anchor):
            return str(start / absolute.relative_to(folder))
    return absolute.name or path


def text_elsewhere(text: str) -> str:
    """Return a text without the folders of this machine: absolute paths in it are shortened."""
    if text.startswith(os.sep):
        return path_elsewhere(text)
    return _PATH.sub(lambda match: path_elsewhere(match[0]), text)


def command_elsewhere(command: str) -> str:
    """Return a command line without the folders of this machine: absolute paths are shortened."""
    try:
        words = shlex.split(command)
    except ValueError:
        return text_elsewhere(command)
    for word in words:
        if (short := _word_elsewhere(word)) != word:
            is_plain = shlex.quote(short.lstrip("~")) == short.lstrip("~")
            command = command.replace(shlex.quote(word), short if is_plain else shlex.quote(short))
    return command


def _word_elsewhere(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and value.startswith(os.sep):
        return f"{name}={path_elsewhere(value)}"
    return text_elsewhere(word)
