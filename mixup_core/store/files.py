"""Files of a store, on a disk or in a bucket. Readers see each file complete or not at all."""

from pathlib import Path

import fsspec.core
from fsspec.implementations.local import LocalFileSystem

from mixup_core.addresses import reason, store_address
from mixup_core.store.bucket import Bucket
from mixup_core.store.errors import StoreError
from mixup_core.store.folder import Folder

Files = Folder | Bucket


def open_files(url: str) -> Files:
    """Return a `Folder` or `Bucket` that reads and writes the files below a path or fsspec URL.

    Nothing is created or requested yet.
    """
    # fsspec would read `::` in a path as a chain of file systems.
    if (path := url.removeprefix("file://")) != url or "://" not in url:
        try:
            return Folder(Path(path).expanduser().absolute())
        except RuntimeError as error:
            raise StoreError(f"{url}: {error}") from error
    try:
        # A cached listing hides what other machines have written since.
        files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except Exception as error:  # each package of fsspec has exceptions of its own
        shown = store_address(url)
        cause = error if shown.is_whole else None  # a traceback would quote the secret
        raise StoreError(f"{shown}: {reason(error, shown)}") from cause
    if isinstance(files, LocalFileSystem):
        return Folder(Path(root))
    return Bucket(files, root, url)
