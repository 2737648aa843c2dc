import pytest
import torch

from mixup_core.images.choices.models import Mlp, NarrowResNet
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.trained import trained_network
from mixup_core.images.training import TrainingState, fit
from mixup_core.images.views import EvaluationImages
from mixup_core.problem import StateError, problem_of

DATA = DataConfig(name="digits", num_train=100)


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(data=DATA, model=Mlp(hidden=(8,)), epochs=1, batch_size=50),
        TrainConfig(
            data=DataConfig(name="digits", num_train=100, views="concat", pool=2),
            model=NarrowResNet(width=2), epochs=1, batch_size=50,
        ),
    ],
    ids=["mlp", "concatenated and pooled"],
)  # fmt: skip
def test_the_trained_network_gives_the_outputs_of_its_run(config: TrainConfig) -> None:
    data = load(config.data)
    state = TrainingState.initial(config, data.info, torch.device("cpu"))
    list(fit(config, data, state))
    network, example = problem_of(config).trained(config, state.to_bytes())
    assert not network.training
    assert len(example) == 2
    assert data.test is not None
    images = EvaluationImages(data.test, data.info, config.data, torch.device("cpu"))[slice(0, 5)]
    assert (example.shape[1:], example.dtype) == (images.shape[1:], images.dtype)
    with torch.no_grad():
        torch.testing.assert_close(network(images), state.network.eval()(images), rtol=0, atol=0)


def test_a_state_of_another_run_is_refused() -> None:
    config = TrainConfig(data=DATA, model=Mlp(hidden=(8,)), epochs=1, batch_size=50)
    with pytest.raises(StateError):
        trained_network(config, b"no state")
