"""Data remarks: notes and warnings about the images of a configuration."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mixup_core.images.data.catalog import SplitName
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.folders import Layout
from mixup_core.images.image_data import facts_of
from mixup_core.rules import printable


def data_remarks(data: DataConfig) -> Iterator[str]:
    """Yield remarks on a run's images, such as copies in two classes, for plans and captions."""
    yield from of_test_folder(data)
    yield from shared_images(data)
    yield from in_two_classes(data)


def of_test_folder(data: DataConfig) -> Iterator[str]:
    """Yield a remark that names the folder of the test images if it is not `test`."""
    if data.test and data.test_folder not in {None, "test"}:
        yield f"the test images are those in {data.test_folder}/"


def in_two_classes(data: DataConfig) -> Iterator[str]:
    """Yield a warning for each split in which images of different classes have the same bytes."""
    facts = facts_of(data)
    if facts is None:
        return
    splits: tuple[SplitName, ...] = ("train", "test") if data.test else ("train",)
    for split in splits:
        if pairs := facts.in_two_classes(split):
            one, other = map(printable, pairs[0])
            what = "image is" if len(pairs) == 1 else "images are"
            yield (
                f"WARNING, {len(pairs)} {what} in two classes of {Layout.of(data).place(split)}/ "
                f"(the first: {one}, like {other}), so that a label is wrong"
            )


def shared_images(data: DataConfig) -> Iterator[str]:
    """Yield warnings that count test and validation images which are training images too."""
    facts = facts_of(data)
    if facts is None:
        return
    test, train = facts.names(data, "test"), facts.names(data, "train")
    is_split = data.test_fraction is not None
    shared = facts.shared_by(test, train) if is_split else list(facts.shared)
    if shared and data.test:
        yield _spell_shared("test", shared, len(test))
    if facts.copies and 0 < data.num_held_out(len(train)) < len(train):
        from mixup_core.images.data.draws import split_off  # most studies need no NumPy

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
