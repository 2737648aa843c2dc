"""OTHER_NAMES: names of settings in other programs, for hints in error messages."""

from collections.abc import Mapping

_CALLED = {
    "batch_size": "batch batchsize bs minibatch_size train_batch_size",
    "epochs": "max_epochs n_epochs num_epochs num_train_epochs",
    "optimizer.lr": "base_lr eta initial_lr learning_rate",
    "optimizer.clip_norm": "clip_grad clip_grad_norm grad_clip gradient_clip gradient_clip_val "
    "gradient_clipping max_grad_norm max_norm",
    "optimizer.weight_decay": "l2 wd",
    "lr_schedule": "lr_scheduler scheduler",
    "lr_schedule.warm_up": "warmup warmup_epochs",
    "loss": "criterion",
    "loss.smoothing": "label_smoothing smoothing",
    "averaging": "ema swa",
    "precision": "amp bf16 fp16 half mixed_precision",
    "model.name": "arch architecture backbone net network",
    "model.weights": "checkpoint pretrained",
    "mix.law.alpha": "alpha beta mixup_alpha",
    "mix.operation": "cutmix mixup mode",
    "mix.probability": "cutmix_prob mix_prob mixup_prob",
    "mix.switch_epoch": "mixup_off_epoch",
    "readout": "early_stopping patience",
    "data.name": "dataset dataset_name",
    "data.folder": "data_dir data_path dir directory path root",
    "data.image_size": "image_size img_size input_size resize resolution size",
    "data.augment": "augmentation augmentations transform transforms",
    "data.skip": "exclude ignore",
    "data.train_fraction": "fraction subset",
    "data.val_size": "val_fraction val_split validation_split",
    "data.folds": "cross_validation cv k_fold k_folds kfold num_folds",
    "data.test_fraction": "holdout split test_size test_split",
    "data.pixel_mean": "mean",
    "data.pixel_std": "std",
    "data.normalise": "normalisation normalization normalize",
}  # fmt: skip

OTHER_NAMES: Mapping[str, str] = {
    name: path for path, names in _CALLED.items() for name in names.split()
}
"""Dotted path of a setting, by the name that other programs use for it, such as `label_smoothing`.

The path starts at a run's configuration, except `readout`, which is a key of the study file.
"""
