"""CPU time saved by shared stages: runs with different switch epochs, trained alone or forked.

    python -m tests.bench.sharing [--rounds N]

CPU seconds in one process, both ways in turn. A fork starts from the stored bytes of the common
part.
"""

from functools import partial
from itertools import islice

import torch

from mixup_core.images.choices.models import NarrowResNet
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.mix_config import MixConfig
from mixup_core.images.training import TrainingState, fit
from mixup_core.laws import Beta
from tests.bench.pairs import Ratio, arguments_of, interleaved, ratios, say
from tests.soak.findings import publish


def switches(epochs: int) -> list[int]:
    """Return the switch epochs of the runs: never, at once, and at every quarter."""
    return [epochs * quarter // 4 for quarter in range(5)]


def config_of(switch_epoch: int, epochs: int) -> TrainConfig:
    """Return the run with a given switch epoch."""
    return TrainConfig(
        data=DataConfig(name="digits"), model=NarrowResNet(), epochs=epochs, eval_every=epochs,
        batch_size=64, mix=MixConfig(law=Beta(alpha=1.0), switch_epoch=switch_epoch),
    )  # fmt: skip


def alone(data: Splits, epochs: int) -> list[bytes]:
    """Train every run from the beginning, and return their final states."""
    configs = [config_of(switch, epochs) for switch in switches(epochs)]
    return [_trained(config, data, None, epochs).to_bytes() for config in configs]


def forked(data: Splits, epochs: int) -> list[bytes]:
    """Train common epochs only once, and return the final states of all runs."""
    trunk: TrainingState | None = None
    ends = []
    for switch in switches(epochs):
        config = config_of(switch, epochs)
        if switch:
            trunk = _trained(config_of(epochs, epochs), data, trunk, switch)
        fork = None
        if trunk is not None:
            fork = TrainingState.initial(config, data.info, torch.device("cpu"))
            fork.load_bytes(trunk.to_bytes(), trunk.records)
        ends.append(_trained(config, data, fork, epochs).to_bytes())
    return ends


def _trained(
    config: TrainConfig, data: Splits, state: TrainingState | None, until: int
) -> TrainingState:
    state = state or TrainingState.initial(config, data.info, torch.device("cpu"))
    for _ in islice(fit(config, data, state), until - len(state.records)):
        pass
    return state


def main() -> None:
    """Measure, print and publish the ratio."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20, help="of each run, at least 4")
    options = parser.parse_args()
    rounds, epochs = options.rounds, options.epochs
    torch.set_num_threads(1)
    data = load(config_of(0, epochs).data)
    assert alone(data, epochs) == forked(data, epochs), (
        "a forked run ends with the bytes of one that was not"
    )
    seconds = interleaved(
        {way.__name__: partial(way, data, epochs) for way in (alone, forked)}, rounds
    )
    at = switches(epochs)
    naive, planned = len(at) * epochs, max(at) + sum(epochs - switch for switch in at)
    ratio = Ratio(
        what=f"{len(at)} switch epochs of {epochs}: alone / forked",
        rounds=ratios(seconds["alone"], seconds["forked"]),
    )
    say([ratio])
    figures = {ratio.what: ratio.plain(), "epochs alone / forked": naive / planned}
    publish("sharing", "Runs that share their first epochs", figures, kind="bench", out=options.out)


if __name__ == "__main__":
    main()
