"""Core of mixsweep: mixing laws, datasets, models, the training loop and the store of results.

The package trains runs without a sweep around them:

    from mixup_core.images.config import TrainConfig
    from mixup_core.images.mix_config import MixConfig
    from mixup_core.images.data_config import DataConfig
    from mixup_core.images.data.datasets import load
    from mixup_core.images.training import fit

It needs torch, torchvision, numpy, scipy and fsspec only. Import its modules by name; a
configuration can then be read without loading torch.
"""
