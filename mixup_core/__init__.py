"""Mixup training without a sweep around it: laws, data, models, the training loop and its store.

    from mixup_core.images.config import TrainConfig
    from mixup_core.images.mix_config import MixConfig
    from mixup_core.images.data_config import DataConfig
    from mixup_core.images.data.datasets import load
    from mixup_core.images.training import fit

Needs torch, torchvision, numpy, scipy and fsspec only. The modules are imported by name, so that
reading a configuration does not load torch.
"""
