"""Experiment record: a study's id in MLflow, so that its report need not load MLflow.

    reports/.STUDY.experiment.json      beside the study's report

A report needs this id for its links to MLflow. MLflow's client could read it from the database, but
loading the client takes longer than the rest of a small report. Each launch and each `mixsweep
sync` writes the record when it opens the experiment.
"""

from contextlib import suppress
from pathlib import Path

from mixsweep.cli.request import Request
from mixup_core.store.errors import StoreFullError, UnreadableError
from mixup_core.store.local_files import read_regular, write_durably
from mixup_core.store.manifests import seal, unseal

_LARGEST = 4096
"""Largest size of a record that is read, in bytes."""


def record_experiment(request: Request, experiment_id: str) -> None:
    """Write the id of a study's MLflow experiment to a file, if MLflow's database is in the home.

    Nothing is written if the file has this id already. It is no error if the file cannot be
    written, because a report can do without it.

    Args:
        request: The study, and the addresses of its results.
        experiment_id: Id that MLflow gave to the experiment.
    """
    if request.home.tracking is not None or _recorded(request) == experiment_id:
        return
    with suppress(OSError, StoreFullError):
        write_durably(_file(request), seal({"experiment_id": experiment_id}))


def stored_experiment_id(request: Request) -> str | None:
    """Return the id of the study's experiment in the MLflow database of the home.

    The id is read from the file that `record_experiment` has written. If there is no such file, for
    example in a home of an older version, the id is read from MLflow and written to the file. The
    result is None if MLflow is not in the home, does not have the study, or cannot read its
    database. The file is read even if the experiment is in MLflow's trash by now: links with this
    id work again after the next launch, which restores the experiment.

    Args:
        request: The study, and the addresses of its results.
    """
    from sweeps.tracking.connection import experiment_id, is_usable

    uri = request.home.tracking_uri
    if request.home.tracking is not None or not is_usable(uri):
        return None
    if (recorded := _recorded(request)) is not None:
        return recorded
    found = experiment_id(uri, request.study.name)
    if found is not None:
        record_experiment(request, found)
    return found


def _recorded(request: Request) -> str | None:
    with suppress(OSError, UnreadableError):
        content = unseal(read_regular(_file(request), _LARGEST)) or {}
        found = content.get("experiment_id")
        return found if isinstance(found, str) else None
    return None


def _file(request: Request) -> Path:
    name = request.study.name
    return request.home.report_of(name).with_name(f".{name}.experiment.json")
