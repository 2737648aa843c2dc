"""ImageData: finds, describes and checks the images that a problem needs. Imports no torch."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mixup_core.addresses import local_path
from mixup_core.images.choices.models import Model
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.draws import split_off
from mixup_core.images.data.facts import DataError, DatasetInfo, SplitName
from mixup_core.images.data.fetching import checksums, data_root, fetch, is_present, statuses
from mixup_core.images.data.folder_facts import (
    FolderFacts,
    file_faults,
    scan_folder,
)
from mixup_core.images.data.folders import (
    TEST_FOLDERS,
    FileFault,
    FileFaultsError,
    Layout,
    describe,
    first_test_folder,
    folder_info,
    unused_folders,
    used_entries,
)
from mixup_core.problem import DataSet, KnownData
from mixup_core.rules import printable
from mixup_core.store.json_records import filled


class ImageData:
    """Finds, downloads, describes and checks the image datasets that runs need."""

    def __init__(self) -> None:
        self._found: dict[DataConfig, DataConfig | str] = {}
        self._known: Callable[[], KnownData] | None = None
        self._looks_here = True

    def sets(self) -> tuple[DataSet, ...]:
        return statuses(data_root())

    def fetch(self, name: str) -> str:
        return fetch(name, data_root())

    def prepare(self, config: TrainConfig, folder: Path) -> TrainConfig:
        data, model = config.data, _model(config)
        if model is not None and (prepared := model.prepared(folder)) is not model:
            config = replace(config, model=prepared)
        if data.folder is None:
            return config
        if data not in self._found:
            try:
                self._found[data] = self._prepared(data, folder)
            except (DataError, OSError, ValueError) as error:
                self._found[data] = str(error)
        found = self._found[data]
        if isinstance(found, str):
            raise DataError(found, fields=("data.folder", "data.name"))
        return replace(config, data=found)

    def recall(self, known: Callable[[], KnownData], *, only: bool) -> None:
        self._known, self._looks_here = known, not only

    def facts(self, config: TrainConfig) -> Mapping[str, Mapping[str, Any]]:
        facts = facts_of(config.data)
        return {} if facts is None else {facts.digest: dataclasses.asdict(facts)}

    def _prepared(self, data: DataConfig, place: Path) -> DataConfig:
        folder = (place / local_path(str(data.folder))).absolute()
        placed = _with_test_folder(replace(data, folder=str(folder)))
        is_here = (folder / "train").exists()
        if self._known is not None and not (self._looks_here and is_here):
            known = self._known()
            if (found := _recalled(placed, known)) is not None:
                return found
            if self._looks_here and any(config.get("data.digest") for config in known.configs):
                raise DataError(
                    f"{printable(str(folder / 'train'))}: not found; this store has results of the "
                    "study for images in another folder. To read these results, give the name of "
                    "the study instead of its file"
                )
        return _found(placed)

    def missing(self, config: TrainConfig) -> str | None:
        root, model, folder = data_root(), _model(config), config.data.folder
        if model is not None and (message := model.missing()) is not None:
            return message
        if folder is not None and not (Path(folder) / "train").exists():
            return (
                f"{printable(folder)}: these images are not on this machine, and training needs "
                "them; if they are in another folder, add --set base.data.folder=FOLDER"
            )
        for name in _needed(config.data):
            if not is_present(name, root):
                return f"{name}: not found in {root}; get it with mixsweep data fetch {name}"
        return None

    def check(self, config: TrainConfig) -> None:
        data, facts = config.data, facts_of(config.data)
        if facts is None or data.folder is None:
            return
        splits = ("train/", f"{Layout.of(data).test_folder}/") if data.test else ("train/",)
        unusable = facts.unreadable.items()
        faults = [FileFault(name=n, text=text) for n, text in unusable if n.startswith(splits)]
        if faults:
            raise FileFaultsError(Path(data.folder), faults)

    def notes(self, config: TrainConfig) -> Iterator[str]:
        folder = config.data.folder
        if folder is not None and Path(folder).is_dir():
            yield from filter(None, [unused_folders(Path(folder), Layout.of(config.data))])

    def open(self, config: TrainConfig) -> None:
        self.check(config)
        data = config.data
        if data.folder is not None:
            from mixup_core.images.data.datasets import load_mapped

            is_open = data.folds is not None and data.fold is None
            load_mapped(replace(data, fold=0) if is_open else data)

    def checksums(self, config: TrainConfig) -> Mapping[str, Mapping[str, str]]:
        data = config.data
        if data.folder is not None and not Path(data.folder).exists():
            return {data.name: {f"{Path(data.folder).name}/": str(data.digest)}}
        is_here = all(is_present(name, data_root()) for name in _needed(data))
        return {data.name: checksums(data)} if is_here else {}


def _model(config: Any) -> Model | None:
    """Return the model of a configuration; None for a problem on images that trains no network."""
    return getattr(config, "model", None)


def described(data: DataConfig) -> DatasetInfo:
    """Return the sizes, classes and other facts about the dataset of a configuration."""
    if data.digest is None:
        return describe(data)
    facts = facts_of(data)
    return _scanned(data) if facts is None else folder_info(data, facts.train, facts.test)


def facts_of(data: DataConfig) -> FolderFacts | None:
    """Return the facts about an image-folder; None for other datasets."""
    return None if data.digest is None else _KNOWN.get(data.digest)


_KNOWN: dict[str, FolderFacts] = {}
"""Facts about image-folders that this process has scanned, by digest."""

_scanned = lru_cache(maxsize=64)(describe)


def _found(placed: DataConfig) -> DataConfig:
    """Scan an image-folder; return its configuration with digest and resulting settings."""
    (folder, _), layout = placed.photos, Layout.of(placed)
    _check_layout(placed, folder)
    try:
        describe(placed)
    except DataError as error:
        is_tested = placed.test and placed.test_fraction is None
        others = file_faults(folder, layout, ("train", "test") if is_tested else ("train",))
        if not others:
            raise
        found = FileFaultsError(folder, others)
        if isinstance(error, FileFaultsError):
            raise found from error
        raise DataError(f"{error}\n{found}") from error
    return _with(placed, scan_folder(folder, data_root(), layout))


def _with_test_folder(placed: DataConfig) -> DataConfig:
    """Return the configuration with the name of its folder of test images, if it is not `test`."""
    folder, is_open = placed.photos[0], placed.test and placed.test_folder is None
    if not is_open or placed.test_fraction is not None or (folder / "test").exists():
        return placed
    return replace(placed, test_folder=first_test_folder(folder))


def _check_layout(placed: DataConfig, folder: Path) -> None:
    """Check settings against the files of an image-folder."""
    if placed.test_fraction is not None and (folder / "test").exists():
        raise DataError(
            f"{folder}: data.test_fraction would ignore the images in test/; remove the setting or "
            "the folder."
        )
    if not placed.skip:
        return
    here = {name for name in ("train", *TEST_FOLDERS) if (folder / name).is_dir()}
    names = [
        name
        for split in here & {"train", "test"}
        for name, _ in used_entries(folder, split, Layout())
    ]
    for pattern in placed.skip:
        is_elsewhere = pattern.partition("/")[0] in here - {"train", "test"}
        if not is_elsewhere and all(map(Layout(skip=(pattern,)).has, names)):
            raise DataError(
                f"{folder}: the pattern {pattern!r} of data.skip matches no file; correct or "
                "remove it."
            )


def _with(placed: DataConfig, facts: FolderFacts) -> DataConfig:
    """Return the configuration of a folder whose facts are known from now on."""
    _KNOWN[facts.digest] = facts
    background = placed.background if facts.transparent else None
    return replace(placed, digest=facts.digest, background=background)


def _recalled(placed: DataConfig, known: KnownData) -> DataConfig | None:
    """Return the configuration of a folder that a store knows; None if it does not know it."""
    own = placed.folder, None if placed.skip is None else list(placed.skip)
    for config in known.configs:
        test_folder, digest = config.get("data.test_folder"), config.get("data.digest")
        is_same = (config.get("data.folder"), config.get("data.skip")) == own
        if is_same and placed.test_folder in {None, test_folder} and isinstance(digest, str):
            facts = filled(FolderFacts, dict(known.facts.get(digest, {})))
            if facts is not None and facts.digest == digest:
                facts = _KNOWN.get(digest, facts)
                return _with(replace(placed, test_folder=test_folder), facts)
    return None


def memory(config: TrainConfig) -> dict[str, int]:
    """Return the size in bytes of the decoded images that runs of a machine share, by dataset."""
    return {config.data.name: described(config.data).num_bytes}


def _needed(data: DataConfig) -> tuple[str, ...]:
    """Return the names of the datasets that a run loads, as `mixsweep data fetch` takes them."""
    return (data.name, *([f"{data.name}-c"] if data.test and data.corruptions else []))


def data_remarks(data: DataConfig) -> Iterator[str]:
    """Yield remarks on a run's images, such as copies in two classes, for plans and captions."""
    if data.test and data.test_folder not in {None, "test"}:
        yield f"the test images are those in {data.test_folder}/"
    facts = facts_of(data)
    if facts is None:
        return
    yield from shared_images(data, facts)
    splits: tuple[SplitName, ...] = ("train", "test") if data.test else ("train",)
    for split in splits:
        if pairs := facts.in_two_classes(split):
            one, other = map(printable, pairs[0])
            what = "image is" if len(pairs) == 1 else "images are"
            yield (
                f"WARNING, {len(pairs)} {what} in two classes of {Layout.of(data).place(split)}/ "
                f"(the first: {one}, like {other}), so that a label is wrong"
            )


def shared_images(data: DataConfig, facts: FolderFacts) -> Iterator[str]:
    """Yield warnings that count test and validation images which are training images too."""
    test, train = facts.names(data, "test"), facts.names(data, "train")
    is_split = data.test_fraction is not None
    shared = facts.shared_by(test, train) if is_split else list(facts.shared)
    if shared and data.test:
        yield _spell_shared("test", shared, len(test))
    if facts.copies and 0 < data.num_held_out(len(train)) < len(train):
        folds = range(data.folds or 0) if data.fold is None else ()
        shared, num_held_out = [], 0
        for one in [replace(data, fold=fold) for fold in folds] or [data]:
            kept, held_out = ([train[i] for i in part] for part in split_off(len(train), one))
            shared += facts.shared_by(held_out, kept)
            num_held_out += len(held_out)
        if shared:
            yield _spell_shared("validation", shared, num_held_out)


def _spell_shared(what: str, shared: Sequence[str], number: int) -> str:
    are = "is" if len(shared) == 1 else "are"
    return (
        f"WARNING, {len(shared)} of the {number} {what} images {are} among the training "
        f"images too (the first: {printable(shared[0])}), so that {what} results are too good "
        "for every arm"
    )
