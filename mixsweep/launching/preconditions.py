"""Preconditions: what a launch checks before it trains: engine, GPU, data, memory and disk."""

import importlib
import shutil

from mixsweep.launching.costs import bytes_of_predictions, bytes_to_keep
from mixsweep.launching.stock import state_bytes, take_stock
from mixsweep.request import RefusedError, Request
from mixup_core.store.errors import StoreFullError
from mixup_core.store.files import Folder
from sweeps.machine.command_line import program
from sweeps.machine.resources import sign_of_gpus, too_small_for_ray
from sweeps.machine.terminal_text import still
from sweeps.running.head import is_elsewhere
from sweeps.running.placement import Placement, PlacementError
from sweeps.state.stages import Plan, plan_study
from sweeps.study.study import Study

_LEAST_FREE = 1_000_000
"""Free bytes that `mixsweep run` needs at least; MLflow's database alone has half a megabyte."""


def require_inline(
    request: Request,
    slots: int | None,
    gpus_per_run: float | None,
    address: str | None,
    kind: str | None,
) -> None:
    """Check that a study can be trained in this process, without Ray, as `--engine inline` asks."""
    requested = {
        "--slots": slots not in {None, 1},
        "--gpus-per-run": gpus_per_run not in {None, 0, 1},
        "--address": address is not None,
        "--device": kind is not None,
    }
    if names := [name for name, is_given in requested.items() if is_given]:
        raise RefusedError(
            f"--engine inline trains one run at a time in this process; remove {', '.join(names)}"
        )
    if request.study.search is not None and not is_installed("optuna"):
        raise RefusedError(
            f"{request.study.name}: this study has a search, which needs Optuna; install optuna"
        )


def has_usable_gpu(gpus_per_run: float | None) -> bool:
    """Return True if runs in this process would use a GPU, given `--gpus-per-run`.

    For training without Ray, in this process. A GPU that the user or this machine promises, and
    that torch does not see, is an error.
    """
    import torch

    if gpus_per_run == 0:
        return False
    if torch.cuda.is_available():
        return True
    sign = sign_of_gpus()
    if gpus_per_run is not None or sign:
        why = f"--gpus-per-run {gpus_per_run} needs" if gpus_per_run else f"{sign} promises"
        raise PlacementError(
            f"{why} a GPU, and torch {torch.__version__} sees none here; fix the GPU "
            "driver or torch, or add --gpus-per-run 0 to train on the CPU"
        )
    return False


def require_gpu_here(placement: Placement) -> None:
    """Check that this machine has the GPU that runs will need, before Ray is started on it.

    For training with Ray. Without `--gpus-per-run`, or if an existing cluster is joined, Ray's
    own count of GPUs decides, and this function checks nothing.
    """
    if placement.gpus_per_run and placement.device is None and not is_elsewhere():
        has_usable_gpu(placement.gpus_per_run)


def is_installed(module: str) -> bool:
    """Return True if a module can be imported; False also if one of its own imports is missing."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    except Exception:  # invalid settings of MLflow are reported when it is opened
        return True
    return True


def require_data(request: Request) -> None:
    """Check that the datasets of all arms are on this machine, if there are runs to train."""
    missing = missing_data(request.study)
    if missing and (request.study.search or plan_study(request.grown, request.store).pending):
        raise RefusedError("\n".join(missing))


def missing_data(study: Study) -> list[str]:
    if study.problem.data is None:
        return []
    needs = study.problem.data()
    return [*dict.fromkeys(filter(None, map(needs.missing, study.arms.values())))]


def require_address_space() -> None:
    """Check that the limit on the address space (`ulimit -v`) is not too low for Ray."""
    if not is_elsewhere() and (message := too_small_for_ray()) is not None:
        raise PlacementError(message)


def require_room(request: Request, plan: Plan) -> None:
    """Check that the disks of the home and of the store have room for the files of planned runs.

    States that are kept for other runs are counted if one of the study is stored already.
    """
    files, places = request.store.files, {request.home.folder: _LEAST_FREE}
    if isinstance(files, Folder):
        places.setdefault(files.root, 0)  # the home itself can be the store
        places[files.root] += bytes_of_predictions(p.run.config for p in plan.pending)
        if any(planned.keep for planned in plan.pending):
            places[files.root] += bytes_to_keep(plan, request.results()) or 0
    for place, needed in places.items():
        existing = next(path for path in (place, *place.absolute().parents) if path.exists())
        free = shutil.disk_usage(existing).free
        if free < needed:
            (holding, _) = take_stock([request.grown], request.store)
            prunable_bytes = state_bytes(holding.prunable)
            raise StoreFullError(
                f"disk full: {place} has {free / 1e6:,.1f} MB free, and this launch needs "
                f"{needed / 1e6:,.1f} MB; `{program()} store prune {request.reference} --yes` "
                f"frees {prunable_bytes / 1e6:,.1f} MB; name more studies in it to free more"
            )


def look_at_data(study: Study) -> None:
    """Open each dataset of a study, so that unusable data are reported before training."""
    if study.problem.data is None:
        return
    needs = study.problem.data()
    with still("looking at the data"):
        for config in study.arms.values():
            needs.open(config)
