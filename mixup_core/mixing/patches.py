"""Patches: means over the patches of a regular grid, and images with rearranged patches."""

from mixup_core.arrays import Tensor


def patch_means(values: "Tensor", grid: tuple[int, int]) -> "Tensor":
    """Return the mean value of each patch of a regular grid, (..., rows, columns)."""
    rows, columns = grid
    split = values.reshape(*values.shape[:-2], rows, values.shape[-2] // rows, columns, -1)
    return split.mean(dim=(-3, -1))


def arranged(images: "Tensor", sources: "Tensor", grid: tuple[int, int]) -> "Tensor":
    """Return images with their patches rearranged; same shape."""
    rows, columns = grid
    count, channels = images.shape[:2]
    split = images.reshape(count, channels, rows, images.shape[2] // rows, columns, -1)
    patches = split.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    index = sources.view(*sources.shape, 1, 1, 1).expand(-1, -1, *patches.shape[2:])
    moved = patches.gather(1, index).view(count, rows, columns, *patches.shape[2:])
    return moved.permute(0, 3, 1, 4, 2, 5).reshape(images.shape)
