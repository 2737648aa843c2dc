"""Study files: YAML in, a checked `Study` out, or every fault of the file at once."""

import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from mixup_core.plugins.installed import load_installed
from sweeps.reading.named_words import words_of
from sweeps.reading.overrides import override
from sweeps.reading.strict_yaml import MAX_BYTES, Fault, Place, read_yaml
from sweeps.reading.study_reader import StudyReader
from sweeps.reading.tree_reader import did_you_mean
from sweeps.study.study import Study


class StudyError(Exception):
    """A study that cannot be read: all that is wrong with it, one line per fault."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


def load_study(reference: str, overrides: Sequence[str] = ()) -> Study:
    """Return the study of a file, checked so that every run of it can start.

    Neither torch nor Ray is loaded, and nothing is written. An image-folder is read in full for its
    digest.

    Args:
        reference: Name of a bundled study, or else the path of a study file. Relative image
            folders count from the folder of that file.
        overrides: `PATH=VALUE` texts, set in the file's tree before it is checked: `seeds=6`,
            `base.epochs=2`, `arms.uniform.mix.law={beta: 2}`, `grid.optimizer.lr=[1e-3, 1e-2]`.

    Raises:
        StudyError: If the file, an override or the study is not right.
        PluginError: If an installed plugin that it names cannot be loaded.
    """
    content, name, folder = _content_of(reference)
    document = read_yaml(content, lambda line: Place(source=name, line=line))
    if isinstance(document.value, dict):
        load_installed(words_of(document.value, overrides))
        for text in overrides:
            override(document, text)
    study = StudyReader(document, folder).study()
    if study is None:
        faults = sorted(document.faults, key=lambda fault: fault.place.line or math.inf)
        raise StudyError(tuple(dict.fromkeys(map(str, faults))))
    return study


def bundled_studies() -> Mapping[str, str]:
    """Return the bundled studies, name to description, sorted by name."""
    return {name: load_study(name).description for name in _bundled_names()}


def _bundled_names() -> list[str]:
    files = resources.files("sweeps.studies").iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def _content_of(reference: str) -> tuple[bytes, str, Path]:
    """Return a study file's bytes, the name that messages give it, and the folder it lies in.

    Raises:
        StudyError: If there is no such file, or it cannot be read.
    """
    bundled = _bundled_names()
    if reference in bundled:
        name = f"{reference}.yaml"
        return resources.files("sweeps.studies").joinpath(name).read_bytes(), name, Path()
    path = Path(reference)
    try:
        if path.is_file():
            with path.open("rb") as stream:
                return stream.read(MAX_BYTES + 1), reference, path.parent
        what = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else ""
    except OSError as error:
        what = (error.strerror or str(error)).lower()
    if what:
        text = f"{what}; expected a study file"
    else:
        hint = did_you_mean(path.stem, bundled)
        text = f"no such file or bundled study{hint}; bundled are {', '.join(bundled)}"
    raise StudyError((str(Fault(place=Place(source=reference), path="", text=text)),))
