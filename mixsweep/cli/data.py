"""Data commands: list and fetch datasets, and check folders of photos."""

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import click

from mixsweep.cli.options import LocalPath, loading_option
from mixsweep.request import BAD_INPUT, DONE, RefusedError
from mixup_core.images.data.facts import SplitName
from mixup_core.images.data.fetching import data_root
from mixup_core.images.data.folder_facts import Examined, FolderFacts, examine, scan_folder
from mixup_core.images.data.folders import (
    Layout,
    first_test_folder,
    spelled_alike,
    unused_folders,
)
from mixup_core.problem import DataError, DataSet, all_data_needs
from mixup_core.rules import printable
from sweeps.machine.command_line import program
from sweeps.machine.terminal_text import still


def spell_place(found: DataSet) -> str:
    """Return where a dataset is; for a missing one, the command that fetches it."""
    return found.place if found.is_present else f"missing; mixsweep data fetch {found.name}"


_SIDE = 224
"""Side in pixels to which `data check` scales the images that it compares."""


@click.group()
def data() -> None:
    """List, fetch and check datasets."""


@data.command(
    "list", hidden=True, add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)  # fmt: skip
def list_data() -> int:
    """Say where the list of datasets is now. For one release."""
    raise RefusedError(f"now: {program()} data fetch")


@data.command("fetch")
@click.argument("name", required=False)
@loading_option
def fetch_data(name: str | None) -> int:
    """Fetch a dataset to this machine; one that is already here is not changed.

    Without NAME, list the datasets and their folders; for a missing one, the command to fetch it.
    """
    datasets = {dataset.name: (needs, dataset) for needs in all_data_needs().values()
                for dataset in needs.sets()}  # fmt: skip
    if name is None:
        for title, (_, dataset) in datasets.items():
            click.echo(f"{title:<14} {spell_place(dataset)}")
        return DONE
    if name not in datasets:
        raise DataError(
            f"{name}: not a dataset that can be fetched; these can be: {', '.join(datasets)}."
        )
    with still(f"fetching {name}"):
        source = datasets[name][0].fetch(name)
    click.echo(f"{name}: {source}")
    return DONE


@data.command("check")
@click.argument("folder", type=LocalPath(file_okay=False, exists=True))
@click.option(
    "--test-folder", help="Folder of test images; default: test, or else val, valid or validation."
)
@click.option("--skip", multiple=True, help="Files to leave out, as in data.skip; repeatable.")
@click.option(
    "--all",
    "names_all",
    is_flag=True,
    help="Name every file that cannot be used; "
    "without this option, many files with the same fault get one line.",
)
def check_data(
    folder: Path, test_folder: str | None, skip: tuple[str, ...], names_all: bool
) -> int:
    """Decode every image of FOLDER, and name the files that cannot be used.

    FOLDER has one folder per class in train/, and usually in test/ too. Also counts test images
    that look like a training image. Exit code 2 if a file cannot be used.
    """
    layout = Layout(test_folder=test_folder or first_test_folder(folder) or "test", skip=skip)
    with still("decoding the images"):
        examined = examine(folder, _SIDE, layout)
    for line in examined.lines(names_all=names_all):
        click.echo(line, err=True)
    if number := examined.number:
        noun = "faults" if number > 1 else "fault"
        hint = "; data.skip of a study file leaves files out" if examined.can_skip else ""
        click.echo(f"{number:,} {noun}{hint}", err=True)
        return BAD_INPUT
    facts = scan_folder(folder, data_root(), layout)
    _report(facts, examined, layout)
    if unused := unused_folders(folder, layout):
        click.echo(unused)
    if len(facts.classes) < 2:
        click.echo("training needs two classes or more", err=True)
        return BAD_INPUT
    return DONE


def _report(facts: FolderFacts, examined: Examined, layout: Layout) -> None:
    """Print the number of images of each class, and remarks such as equal images."""
    for name in facts.classes:
        test_count = f", {len(facts.test.get(name, ()))} test" if facts.test else ""
        click.echo(f"{printable(name)}: {len(facts.train[name])} training{test_count} images")
    near = [pair for pair in examined.near if pair[0].partition("/")[2] not in facts.shared]

    def alike(pairs: Iterable[tuple[str, str]]) -> list[str]:
        return [f"{one}, like {other}" for one, other in pairs]

    for remark, names in (
        ("images have transparent pixels; set data.background", facts.transparent),
        ("test images are training images too", facts.shared),
        ("test images look like a training image", alike(near)),
        ("training images are identical files of another", alike(facts.equal_images("train"))),
        *((f"images are in two classes of {layout.place(split)}/, so that a label is wrong",
           alike(facts.in_two_classes(split))) for split in get_args(SplitName)),
        ("names differ only in capitals or in how an accent is written", _alike(facts)),
    ):  # fmt: skip
        if names:
            click.echo(f"{len(names)} {remark}; the first: {printable(names[0])}")
    if not facts.test:
        click.echo("no test images; data.test_fraction: 0.2 holds out a fifth of each class")


def _alike(facts: FolderFacts) -> list[str]:
    """Return pairs of classes or images whose names differ only in capitals or in accents."""
    groups = spelled_alike(facts.classes)
    for split in (facts.train, facts.test):
        for kind, files in split.items():
            groups += [[f"{kind}/{name}" for name in alike] for alike in spelled_alike(files)]
    return [f"{one} and {other}" for one, other, *_ in groups]
