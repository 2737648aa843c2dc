"""Time of whole epochs of training, compared with a conventional training loop.

    python -m tests.bench.training [NAMES ...] [--rounds N]

Mixup of two-view images, one thread, CPU seconds, both pipelines in turn. The other one is
`tests.bench.gpu.reference`: a DataLoader, PyTorch's default Adam, float32, the same network with
the same initial weights. Nothing is evaluated in either.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from mixup_core.images.choices.models import Mlp, NarrowResNet, ResNet18
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.training import fit
from mixup_core.laws import Beta
from tests.bench.gpu import reference
from tests.bench.pairs import arguments_of, interleaved, spread
from tests.mixup_core.small_files import noise_images
from tests.soak.findings import publish

CPU = torch.device("cpu")
INFO = DATASETS["fashion-mnist"].info


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A network, and how many images it is trained on in a round."""

    model: Mlp | NarrowResNet | ResNet18
    images: int
    batch: int
    goal: float | None = None
    """Required median ratio in bfloat16."""
    least: float | None = None
    """Required smallest ratio of every round in bfloat16."""


CASES = {
    "mlp": Case(model=Mlp(hidden=(256, 256)), images=15_000, batch=750, goal=4.8),
    "narrow": Case(model=NarrowResNet(), images=4_000, batch=125),
    "resnet18": Case(model=ResNet18(), images=750, batch=750, goal=3.0, least=2.6),
}


def measure(name: str, rounds: int, at_most: int | None) -> dict[str, dict[str, float | None]]:
    """Return the ratios of one network in both precisions, with at most `at_most` images."""
    case, law = CASES[name], Beta(alpha=1.0)
    if at_most is not None:
        fewer = {"images": min(case.images, at_most), "batch": min(case.batch, at_most)}
        case = replace(case, **fewer)
    images = noise_images(INFO, case.images)  # zeros would be unrealistically fast
    plain = reference.ConcatenatedViews(images, INFO, seed=0)
    network = case.model.initialised(2 * INFO.channels, INFO.num_classes, INFO.image_size, seed=0)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def run(precision: Literal["float32", "bfloat16"]) -> Iterator[object]:
        epochs = max(100, rounds + 1)  # as many as a real run has: it compiles what pays
        config = TrainConfig(
            data=DataConfig(views="concat"), model=case.model, mix=MixConfig(law=law),
            epochs=epochs, eval_every=epochs, batch_size=case.batch, precision=precision,
        )  # fmt: skip
        return fit(config, Splits(info=INFO, train=images, val=None, test=None))

    runs = {precision: run(precision) for precision in ("float32", "bfloat16")}
    seconds = interleaved(
        {
            "reference": lambda: reference.train_epoch(
                network, optimizer, plain, case.batch, law, CPU
            ),
            "float32": lambda: next(runs["float32"]),
            "bfloat16": lambda: next(runs["bfloat16"]),
        },
        rounds,
    )
    goals = {"goal": case.goal, "goal of every round": case.least}
    found: dict[str, dict[str, float | None]] = {}
    for precision, goal in (("float32", dict.fromkeys(goals)), ("bfloat16", goals)):
        pairs = zip(seconds["reference"], seconds[precision], strict=True)
        found[f"{name}, B={case.batch}, {precision}: reference / ours"] = {
            **spread([theirs / ours for theirs, ours in pairs]),
            **goal,
        }
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and publish the ratios."""
    parser = arguments_of(__doc__)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, help="at most, of an epoch and of a batch")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    figures: dict[str, object] = {}
    for name in options.names:
        figures |= measure(name, options.rounds, options.images)
    figures["bfloat16 on AMX"] = torch.cpu.get_capabilities().get("amx_bf16", False)
    publish("training", "Epochs of mixup, end to end", figures, kind="bench", out=options.out)


if __name__ == "__main__":
    main()
