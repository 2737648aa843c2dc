"""Networks of timm: initial weights depend on the seed.

Pretrained weights come from a file only.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from mixup_core.config.building import built
from mixup_core.images.choices.models import Timm
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.digests import file_digest
from mixup_core.images.image_data import ImageData
from mixup_core.images.problem import IMAGES
from mixup_core.keys import run_key
from mixup_core.problem import DataError
from mixup_core.rules import RuleError

SMALL = "resnet10t"


def _config(**values: Any) -> TrainConfig:
    model = {"name": "timm", "architecture": SMALL} | values
    fixed = {"data.name": "digits", "data.image_size": 32, "epochs": 1, "batch_size": 500}
    return built(TrainConfig, fixed | {"model": model, "data.num_train": 40})


def test_a_timm_network_has_the_weight_spread_of_timm_and_follows_the_seed() -> None:
    import timm  # slow to load

    model = Timm(architecture=SMALL)
    first, again, other = (model.initialised(1, 4, 32, seed) for seed in (0, 0, 1))
    with torch.random.fork_rng(devices=[]):
        published = timm.create_model(SMALL, in_chans=1, num_classes=4)
    assert first.state_dict().keys() == published.state_dict().keys()
    weight = "layer1.0.conv1.weight"
    assert torch.equal(first.state_dict()[weight], again.state_dict()[weight])
    assert not torch.equal(first.state_dict()[weight], other.state_dict()[weight])
    spread = float(published.state_dict()[weight].std())
    assert float(first.state_dict()[weight].std()) == pytest.approx(spread, rel=0.1)


def test_a_fixed_size_architecture_is_built_for_the_image_size() -> None:
    model = Timm(architecture="vit_tiny_patch16_224")
    assert model.initialised(3, 4, 32, 0).eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 4)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_pretrained_weights_are_loaded_except_for_the_classifier(
    tmp_path: Path, suffix: str
) -> None:
    from safetensors.torch import save_file

    file = tmp_path / f"weights{suffix}"
    weights = Timm(architecture=SMALL).initialised(3, 7, 32, seed=5).state_dict()
    save_file(weights, file) if suffix == ".safetensors" else torch.save(weights, file)
    network = Timm(architecture=SMALL, weights=str(file)).initialised(3, 4, 32, seed=0)
    own = network.state_dict()
    assert own["fc.weight"].shape[0] == 4
    assert all(torch.equal(own[n], weights[n]) for n in weights if not n.startswith("fc."))


def test_keys_depend_on_the_digest_of_the_weights_file_and_not_its_path(tmp_path: Path) -> None:
    content = Timm(architecture=SMALL).initialised(1, 10, 32, seed=5).state_dict()
    for name, file in (("a", "a.pt"), ("b", "b.pt")):
        torch.save(content | {"fc.bias": torch.full((10,), ord(name))}, tmp_path / file)
    with pytest.raises(RuleError, match="weights_digest"):
        run_key(_config(weights="a.pt"))
    prepared = [ImageData().prepare(_config(weights=w), tmp_path) for w in ("a.pt", "b.pt")]
    (tmp_path / "moved.pt").write_bytes((tmp_path / "a.pt").read_bytes())
    moved = ImageData().prepare(_config(weights="moved.pt"), tmp_path)
    assert len({run_key(config) for config in (*prepared, moved, _config())}) == 3
    assert run_key(moved) == run_key(prepared[0])
    assert next(iter(IMAGES.start(prepared[0], None, "cpu"))).metrics["train/loss"] > 0
    (tmp_path / "a.pt").write_bytes(b"other")
    with pytest.raises(DataError, match="changed since the study was read"):
        IMAGES.start(prepared[0], None, "cpu")
    with pytest.raises(DataError, match=r"c\.pt: not found"):
        ImageData().prepare(_config(weights="c.pt"), tmp_path)


def test_an_unknown_architecture_or_a_wrong_weights_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no architecture 'resnet9' \(did you mean resnet"):
        Timm(architecture="resnet9").initialised(1, 4, 32, seed=0)
    file = tmp_path / "weights.pt"
    file.write_bytes(b"no weights")
    model = Timm(architecture=SMALL, weights=str(file), weights_digest=file_digest(file))
    with pytest.raises(DataError, match="not a readable file of weights"):
        model.initialised(1, 4, 32, seed=0)
    torch.save(Timm(architecture=SMALL).initialised(3, 4, 32, seed=0).state_dict(), file)
    with pytest.raises(DataError, match="another architecture or to another number of channels"):
        Timm(architecture=SMALL, weights=str(file)).initialised(1, 4, 32, seed=0)
