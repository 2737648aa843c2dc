"""Cost of assembling the batches of an epoch, compared with a conventional training loop.

    python -m tests.bench.assembly [--rounds N] [--images N]

Two-view batches of 750 images of 28x28 pixels, one thread, CPU seconds; both pipelines are measured
in turn.
"""

from collections.abc import Sequence
from functools import partial

import torch

from mixup_core.freed_memory import keep_freed_memory
from mixup_core.images.batches import Draws, batches
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.catalog import DATASETS
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images
from mixup_core.images.mix_config import MixConfig
from mixup_core.images.views import TrainingImages
from mixup_core.laws import Beta, Erm, Law
from tests.bench.gpu import reference
from tests.bench.pairs import Ratio, arguments_of, interleaved, ratios, say, spread
from tests.soak.findings import publish

INFO = DATASETS["fashion-mnist"].info
BATCH = 750
LAWS: tuple[tuple[str, Law, float], ...] = (
    ("ERM", Erm(), 5.0),
    ("mixup", Beta(alpha=1.0), 7.0),
)
"""Laws that are measured, each with the smallest ratio that is required."""


def random_images(count: int) -> Images:
    """Return images of random noise; images of zeros would be unrealistically fast."""
    rng = torch.Generator().manual_seed(0)
    shape = (count, INFO.channels, INFO.image_size, INFO.image_size)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=rng)
    return Images(pixels=pixels, labels=torch.arange(count) % INFO.num_classes)


def measure(rounds: int, num_images: int) -> tuple[list[Ratio], dict[str, dict[str, float]]]:
    """Return the ratios, and the microseconds that mixsweep needs per image."""
    images = random_images(num_images)
    plain = reference.ConcatenatedViews(images, INFO, seed=0)
    found, cost = [], {}
    for name, law, goal in LAWS:
        config = TrainConfig(
            data=DataConfig(views="concat"), mix=MixConfig(law=law), epochs=1, batch_size=BATCH
        )
        seen = TrainingImages(images, INFO, config.data, config.seed, torch.device("cpu"))

        def ours(seen: TrainingImages, config: TrainConfig = config) -> None:
            how = config.in_epoch(0)
            for _ in batches(seen, Draws.for_training(config, 0, how, seen), how):
                pass

        def theirs(law: Law = law) -> None:
            for _ in reference.batches(plain, BATCH, law):
                pass

        seconds = interleaved({"reference": theirs, "ours": partial(ours, seen)}, rounds)
        rounded = ratios(seconds["reference"], seconds["ours"])
        found.append(Ratio(what=f"assembly, {name}: reference / ours", rounds=rounded, goal=goal))
        for way, taken in seconds.items():
            per_image = [second / num_images * 1e6 for second in taken]
            cost[f"{name}, {way}, microseconds per image"] = spread(per_image)
    return found, cost


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Measure, print and publish the ratios, and return them."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=15_000)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    keep_freed_memory()  # as processes that train do
    found, cost = measure(options.rounds, options.images)
    say(found)
    figures = {ratio.what: ratio.plain() for ratio in found} | cost
    publish(
        "assembly", f"Batches of {BATCH} two-view images", figures, kind="bench", out=options.out
    )
    return found


if __name__ == "__main__":
    main()
