"""Bare loops: train every N-th run of a study in one process, with mixup_core alone.

Started by `tests.bench.launch`: bare PART PARTS STUDY [PATH=VALUE ...].
"""

import sys

import torch

from mixup_core.images.training import start
from sweeps.reading.study_file import load_study


def main(part: int, parts: int, study: str, *overrides: str) -> None:
    """Train the runs of one part of the study."""
    torch.set_num_threads(1)
    for run in load_study(study, overrides).runs()[part::parts]:
        for _ in start(run.config, None, "cpu"):
            pass


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
