"""What shared stages save: runs that differ in their switch epoch, each alone or forked.

    python -m tests.bench.sharing [--rounds N]

Seconds of CPU in one process, both in turn; a fork begins at the bytes of the trunk's state.
"""

from itertools import islice

import torch

from mixup_core.images.config import DataConfig, MixConfig, NarrowResNet, TrainConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.training import TrainingState, fit
from mixup_core.laws import Beta
from tests.bench.pairs import Ratio, arguments_of, interleaved, ratios, say
from tests.soak.findings import publish

EPOCHS = 20
SWITCHES = (0, 5, 10, 15, 20)


def config_of(switch_epoch: int) -> TrainConfig:
    """Return the run that switches at an epoch."""
    return TrainConfig(
        data=DataConfig(name="digits"), model=NarrowResNet(), epochs=EPOCHS, eval_every=EPOCHS,
        batch_size=64, mix=MixConfig(law=Beta(alpha=1.0), switch_epoch=switch_epoch),
    )  # fmt: skip


def alone(data: Splits) -> list[bytes]:
    """Train every run from its begin; return their last states."""
    return [_trained(config_of(switch), data, None, EPOCHS).to_bytes() for switch in SWITCHES]


def forked(data: Splits) -> list[bytes]:
    """Train what the runs share once; return their last states."""
    trunk: TrainingState | None = None
    ends = []
    for switch in SWITCHES:
        if switch:
            trunk = _trained(config_of(EPOCHS), data, trunk, switch)
        fork = None
        if trunk is not None:
            fork = TrainingState.initial(config_of(switch), data.info, torch.device("cpu"))
            fork.load_bytes(trunk.to_bytes(), trunk.records)
        ends.append(_trained(config_of(switch), data, fork, EPOCHS).to_bytes())
    return ends


def _trained(
    config: TrainConfig, data: Splits, state: TrainingState | None, until: int
) -> TrainingState:
    state = state or TrainingState.initial(config, data.info, torch.device("cpu"))
    for _ in islice(fit(config, data, state), until - len(state.records)):
        pass
    return state


def main() -> None:
    """Measure, print and publish."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rounds = options.rounds
    torch.set_num_threads(1)
    data = load(config_of(0).data)
    assert alone(data) == forked(data), "a forked run ends with the bytes of one that was not"
    seconds = interleaved({"alone": lambda: alone(data), "forked": lambda: forked(data)}, rounds)
    naive = len(SWITCHES) * EPOCHS
    planned = max(SWITCHES) + sum(EPOCHS - switch for switch in SWITCHES)
    ratio = Ratio(
        what=f"{len(SWITCHES)} switch epochs of {EPOCHS}: alone / forked",
        rounds=ratios(seconds["alone"], seconds["forked"]),
    )
    say([ratio])
    figures = {ratio.what: ratio.plain(), "epochs alone / forked": naive / planned}
    publish("sharing", "Runs that share their first epochs", figures, kind="bench", out=options.out)


if __name__ == "__main__":
    main()
