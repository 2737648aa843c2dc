"""Core of mixsweep: mixing laws, datasets, models, the training loop and the store of results.

The package can train a single run without a study file:

    from mixup_core.images.config import MixConfig, TrainConfig
    from mixup_core.images.data.data_config import DataConfig
    from mixup_core.images.data.datasets import load
    from mixup_core.images.training import fit

The package needs torch, torchvision, numpy, scipy and fsspec only. Import its modules by name, as
above: code that only reads a configuration then does not load torch.
"""
