"""Cost of the checks of a plugin's operation and probe, as a share of the time of an epoch.

    python -m tests.bench.checks [--epochs N]

The checks are timed where training calls them, because their share is smaller than the spread of
the times of epochs.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from mixup_core import seeding
from mixup_core.config.building import with_values
from mixup_core.images import batches, training
from mixup_core.images.probes import measuring
from mixup_core.plugins.loading import use
from mixup_core.records import EpochRecord
from sweeps.reading.study_file import load_study
from sweeps.running.attempt import each_without_global_draws
from tests.bench.pairs import arguments_of, spread
from tests.soak.findings import publish

CHECKS: tuple[tuple[Any, str], ...] = (
    (batches, "require_mixed"), (training, "_require_weights"),
    (measuring, "_copies"), (measuring, "_require_unchanged"), (seeding, "_positions"),
)  # fmt: skip
STUDIES = ("digits", "quickstart")
"""Bundled studies whose arm `uniform` is measured."""
PARTS = {
    "operation": {"mix.operation": "halves", "probes": [], "eval_every": 1},
    "probe in each epoch": {"probes": ["weight-norm"], "eval_every": 1},
}


def main() -> None:
    """Measure and publish the costs."""
    parser = arguments_of(__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, Any] = {}
    use(Path(str(files("mixsweep.templates") / "plugin.py")))
    for study, (part, values) in product(STUDIES, PARTS.items()):
        config = with_values(
            load_study(study).arms["uniform"], {**values, "epochs": options.epochs + 1}
        )
        epochs = list(_epochs(config))[1:]  # the first chooses kernels
        figures[f"{study}, {part}"] = {
            "epoch_seconds": spread([whole for whole, _ in epochs]),
            "share_of_checks": spread([checks / (whole - checks) for whole, checks in epochs]),
        }
    publish("checks", "time of the checks of a plugin's parts over that of the epoch without them",
            figures, kind="bench", out=options.out)  # fmt: skip


def _epochs(config: Any) -> Iterator[tuple[float, float]]:
    """Yield the CPU seconds of each epoch, and those of its checks."""
    spent = [0.0]

    def timed(check: Callable[..., Any], *args: Any) -> Any:
        started = time.thread_time()
        found = check(*args)
        spent[0] += time.thread_time() - started
        return found

    with ExitStack() as stack:
        stack.enter_context(patch.object(measuring, "is_of_plugin", return_value=True))
        for module, name in CHECKS:
            stack.enter_context(patch.object(module, name, partial(timed, getattr(module, name))))
        items = training.start(config, None, "cpu").gradually()
        started = time.thread_time()
        for item in each_without_global_draws(items, {"plugin.py": ""}, "cpu"):
            if isinstance(item, EpochRecord):
                yield time.thread_time() - started, spent[0]
                started, spent[0] = time.thread_time(), 0.0


if __name__ == "__main__":
    main()
