"""Networks of the package timm. Pretrained weights come only from a file that the user names."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mixup_core.images.data.digests import file_digest
from mixup_core.problem import DataError


def timm_network(
    architecture: str, in_channels: int, num_classes: int, image_size: int
) -> nn.Module:
    """Return a network of timm with random weights; nothing is downloaded."""
    try:
        import timm
    except ImportError as error:
        raise DataError(
            "model timm: the package timm is not installed; pip install 'mixsweep[timm]'"
        ) from error
    if message := unknown(architecture):
        raise DataError(message)
    published = timm.get_pretrained_cfg(architecture)
    has_one_size = published is not None and published.fixed_input_size
    size: dict[str, Any] = {"img_size": image_size} if has_one_size else {}
    network: nn.Module = timm.create_model(
        architecture,
        pretrained=False,
        in_chans=in_channels,
        num_classes=num_classes,
        **size,
    )
    return network


def unknown(architecture: str) -> str | None:
    """Return a message if timm has no such architecture, with the nearest names; else None."""
    import timm

    if timm.is_model(architecture):
        return None
    near = get_close_matches(architecture, timm.list_models(), 3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    return (
        f"model.architecture: timm {timm.__version__} has no architecture {architecture!r}{hint}; "
        'all names: python -c "import timm; print(*timm.list_models())"'
    )


def load_weights(network: nn.Module, file: Path, digest: str | None) -> None:
    """Load pretrained weights into a network.

    If the file has another number of classes, the last layer keeps its present weights.
    """
    if not file.is_file():
        raise DataError(f"{file}: not found; model.weights must name a file of weights")
    if digest is not None and file_digest(file) != digest:
        raise DataError(
            f"{file}: its weights changed since the study was read; start the study again"
        )
    try:
        weights = _tensors(file)
    except Exception as error:  # damaged files raise errors of many types
        raise DataError(
            f"{file}: not a readable file of weights ({type(error).__name__}: {error})"
        ) from error
    own = network.state_dict()
    classifier = {id(part) for part in network.get_classifier().parameters()}  # type: ignore[operator]
    heads = {name for name, part in network.named_parameters() if id(part) in classifier}
    wrong = [
        name
        for name in own
        if name not in heads and (name not in weights or weights[name].shape != own[name].shape)
    ]
    if wrong:
        name = wrong[0]
        found = tuple(weights[name].shape) if name in weights else "nothing"
        raise DataError(
            f"{file}: the tensor {name} must have shape {tuple(own[name].shape)}, got {found}; the "
            "weights belong to another architecture or to another number of channels"
        )
    fitting = {
        name: weights[name]
        for name in own
        if name in weights and weights[name].shape == own[name].shape
    }
    network.load_state_dict(own | fitting)


def _tensors(file: Path) -> dict[str, Tensor]:
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return dict(load_file(file))
    loaded = torch.load(file, map_location="cpu", weights_only=True)
    return dict(loaded.get("state_dict", loaded))
