"""Frozen keys of all runs of the bundled studies and of `keyed.yaml`, and frozen defaults.

A key leaves out fields that have their default, and has only the name of a dataset. So if a default
or the mean of a dataset changed, old results would get a new meaning. Metrics are frozen too: the
values of a renamed one would not be found.

`make golden` adds new runs and fields and changes no old ones. If keys are meant to change because
`NUMERICS_VERSION` was raised, delete `keys.json` first; the diff becomes part of the commit.
"""

import dataclasses
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from tests.golden.project import (
    DATASETS,
    PROBLEMS,
    REQUIRED,
    FolderFacts,
    bundled_names,
    catalogue_of,
    confirming,
    load_study,
    members,
    parts,
    problem_named,
    run_key,
    spelled,
    stage_keys,
)

FILE = Path(__file__).with_name("keys.json")
DEFAULTS = Path(__file__).with_name("defaults.json")
KEYED = Path(__file__).with_name("keyed.yaml")

_MANY_SEEDS = 100

Defaults = dict[str, dict[str, Any]]
"""Default of each field by problem and dotted path, as keys spell it; `required` if there is none.
Also the facts of each dataset, and the names of metrics by problem.
"""
_FACTS = ("num_train", "num_test", "num_classes", "channels", "image_size", "mean", "std")

Keys = dict[str, dict[str, str]]
"""Run key and the first digits of a sha256 over the stage keys, by study and run."""


@cache
def keys_now() -> Keys:
    """Return the keys that the present code computes."""
    studies = [*map(load_study, bundled_names()), keyed_study()]
    return {
        study.name: {name: keys_of(config) for name, config in _runs(study)} for study in studies
    }


def keys_frozen() -> Keys:
    """Return the frozen keys; empty if the file was deleted."""
    frozen: Keys = json.loads(FILE.read_text()) if FILE.exists() else {}
    return frozen


@cache
def keyed_study() -> Any:
    """Return the study of `keyed.yaml`, with image folders whose bytes never change.

    Most files are no real images, because a key depends only on names and contents.
    """
    with tempfile.TemporaryDirectory() as place:
        for folder in ("photos", "others", "glyphs"):
            for name in ("train/cat/0.png", "train/dog/0.png", "test/cat/0.png", "test/dog/0.png"):
                file = Path(place, folder, name)
                file.parent.mkdir(parents=True)
                content = _GLYPH if folder == "glyphs" else b""
                file.write_bytes(content + f"{folder} {name}".encode())
        for folder in ("undivided", "skipping"):
            shutil.copytree(Path(place, "photos", "train"), Path(place, folder, "train"))
            for kind in ("cat", "dog"):
                Path(place, folder, "train", kind, "1.png").write_text(f"{folder} {kind}")
        shutil.copytree(Path(place, "photos", "test"), Path(place, "skipping", "test"))
        shutil.copytree(Path(place, "others", "train"), Path(place, "validated", "train"))
        shutil.copytree(Path(place, "others", "test"), Path(place, "validated", "val"))
        study = Path(place, KEYED.name)
        study.write_text(KEYED.read_text())
        return load_study(str(study))


_GLYPH = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020804000000d8bfc5af000000124944415478da6364f6"
    "65606062606060000002a100543ff1445e0000000049454e44ae426082"
)
"""A transparent PNG of 2 x 2 pixels; bytes after its end are ignored."""


def defaults_now() -> Defaults:
    """Return the default of every field of every problem's configuration, choices included."""
    defaults = {name: dict(_defaults(problem_named(name).config, "")) for name in PROBLEMS}
    return defaults | {"datasets": dict(_facts()), "metrics": dict(_metrics())}


def _facts() -> Iterator[tuple[str, Any]]:
    for name, dataset in DATASETS.items():
        for fact in _FACTS:
            value = getattr(dataset.info, fact)
            yield f"{name}.{fact}", list(value) if isinstance(value, tuple) else value
    for field in dataclasses.fields(FolderFacts):
        yield f"image-folder.{field.name}", True


def _metrics() -> Iterator[tuple[str, bool]]:
    for name in PROBLEMS:
        for metric in problem_named(name).metrics:
            yield f"{name}: {metric}", True


def defaults_frozen() -> Defaults:
    """Return the frozen defaults; empty if the file was deleted."""
    frozen: Defaults = json.loads(DEFAULTS.read_text()) if DEFAULTS.exists() else {}
    return frozen


def _defaults(kind: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield dotted path and default of every field of a dataclass and of all nested ones.

    The path contains the kind of a choice: `mix.law.beta.alpha`.
    """
    for part in parts(kind):
        path = f"{prefix}{part.name}"
        default = "required" if part.default is REQUIRED else spelled(part.default, brief=True)
        yield path, json.loads(json.dumps(default))
        for below in _kinds(part.hint):
            tag = getattr(below, "tag", None) or getattr(below, "name", None)
            yield from _defaults(below, f"{path}.{tag}." if isinstance(tag, str) else f"{path}.")


def _kinds(hint: Any) -> Iterator[Any]:
    """Yield the dataclasses in a type annotation."""
    if catalogue_of(hint) is not None:
        yield from members(hint)
    elif dataclasses.is_dataclass(hint):
        yield hint
    arguments = get_args(hint)
    for part in arguments[:1] if get_origin(hint) is Annotated else arguments:
        yield from _kinds(part)


def keys_of(config: Any) -> str:
    """Return the run key of a configuration and a hash of its stage keys."""
    stages = hashlib.sha256(" ".join(stage_keys(config)).encode()).hexdigest()[:12]
    return f"{run_key(config)} {stages}"


def _runs(study: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and configuration of each run of a study, possible points included.

    Seeds enter all keys in the same way, so two seeds are enough.
    """
    kept = study.seeds if len(study.seeds) < _MANY_SEEDS else study.seeds[:2]
    for run in study.runs():
        if run.seed in study.seeds and run.seed not in kept:
            continue
        yield f"{run.arm}, seed {run.seed}", run.config
    if study.search is None:
        return
    points = {
        " ".join(f"{path}={value}" for path, value in values.items()): study.search.config_of(
            values
        )
        for values in study.search.space.corners()
    }
    for point, config in points.items():
        for seed in study.seeds:
            yield f"{point}, seed {seed}", dataclasses.replace(config, seed=seed)
    for arm, config in (study.arms | points).items():
        for seed in study.search.strategy.confirm_seeds:
            confirmation = dataclasses.replace(confirming(config), seed=seed)
            yield f"confirm {arm}, seed {seed}", confirmation


if __name__ == "__main__":
    keys = keys_frozen()
    for study, runs in keys_now().items():
        keys[study] = runs | keys.get(study, {})
    FILE.write_text(json.dumps(keys, indent=0) + "\n")
    defaults = defaults_frozen()
    for problem, fields in defaults_now().items():
        defaults[problem] = fields | defaults.get(problem, {})
    DEFAULTS.write_text(json.dumps(defaults, indent=0) + "\n")
