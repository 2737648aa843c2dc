"""A study of photos in a folder, and a process that knows nothing of them yet."""

from mixup_core.images import image_data

STUDY = """
study: signs
base:
  data: {name: image-folder, folder: photos, image_size: 8}
  model: {name: mlp, hidden: [4]}
  epochs: 2
  batch_size: 2
arms:
  erm: {mix.law: erm}
  uniform: {mix.law: {beta: 1.0}}
seeds: 2
"""


def forget() -> None:
    """Empty the caches of the facts of folders, as in a new process."""
    image_data._KNOWN.clear()
    image_data._scanned.cache_clear()
