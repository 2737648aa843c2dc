"""compare: two arms head to head."""

import json
from collections.abc import Sequence
from pathlib import Path

import click

from sweeps.commands.request import (
    DONE,
    RefusedError,
    Request,
    home_option,
    json_option,
    set_option,
    store_option,
)
from sweeps.home import Home
from sweeps.reading.study_file import load_study


@click.command()
@click.argument("studies", nargs=-1, required=True, metavar="STUDY...")
@click.option(
    "--arms",
    nargs=2,
    required=True,
    metavar="A B",
    help="The two arms; STUDY/ARM where several of the studies have one of that name.",
)
@click.option("--metric", help="Default: what the first study's report leads with.")
@set_option
@home_option
@store_option
@json_option
def compare(  # noqa: PLR0913  its options
    studies: Sequence[str],
    arms: tuple[str, str],
    metric: str | None,
    overrides: Sequence[str],
    home: Path,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Compare two arms of one study, or of several, paired by seed."""  # noqa: DOC501
    from reports.head_to_head import Side, head_to_head

    requests = [
        Request(
            reference=reference,
            overrides=tuple(overrides),
            study=load_study(reference, overrides),
            home=Home(folder=home, store_url=store_url),
        )
        for reference in studies
    ]
    first, second = (_arm(name, requests) for name in arms)
    sides = [
        Side(study=request.grown, arm=arm, results=request.results())
        for request, arm in (first, second)
    ]
    metric = metric or sides[0].study.headline
    try:
        found = head_to_head(sides[0], sides[1], metric)
    except ValueError as error:
        raise RefusedError(str(error)) from error
    if as_json:
        click.echo(json.dumps(found.record(), indent=2))
        return DONE
    for listing in found.listings():
        click.echo(listing.markdown())
    return DONE


def _arm(name: str, requests: Sequence[Request]) -> tuple[Request, str]:
    """Return the one request and arm that a name means.

    Raises:
        RefusedError: If none or several have such an arm.
    """
    found = [
        (request, arm)
        for request in requests
        for arm in request.grown.arms
        if name in {arm, f"{request.study.name}/{arm}"}
    ]
    if not found:
        arms = "; ".join(f"{r.study.name} has {', '.join(r.study.arms)}" for r in requests)
        raise RefusedError(f"no arm {name!r}: {arms}")
    if len(found) > 1:
        spelled = " or ".join(f"{request.study.name}/{arm}" for request, arm in found)
        raise RefusedError(f"which {name!r}: {spelled}?")
    return found[0]
