"""Lease: the exclusive right to train a study, whose store is in a folder or a bucket."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from mixup_core.store.checkpoints import Store
from mixup_core.store.files import Bucket
from sweeps.leasing.bucket_lease import BucketLease
from sweeps.leasing.folder_lease import FolderLease
from sweeps.leasing.holders import Heartbeat, Holder, RunningRun


class Lease:
    """The exclusive right of this process to train a study (to be its driver).

    The lease ends with `release`, at the end of its `with` block, or when this process ends.
    """

    def __init__(self, held: FolderLease | BucketLease, study: str) -> None:
        """Wrap a lease that is already acquired; call `Lease.acquire` instead."""
        self._held = held
        self._study = study

    @classmethod
    def acquire(cls, store: Store, study: str, command: str) -> Self:
        """Acquire the exclusive right (lease) of this process to train a study.

        In a bucket this takes up to half a minute if a driver on another machine was killed.
        """
        if isinstance(store.files, Bucket):
            return cls(BucketLease(store.files, study, command), study)
        return cls(FolderLease(store.files.root, study, command), study)

    @classmethod
    def current(cls, store: Store, study: str) -> Holder | None:
        """Return the record of the driver (process) that trains a study now; None if none does.

        None also if the driver's record is damaged.
        """
        if isinstance(store.files, Bucket):
            return BucketLease.current(store.files, study)
        return FolderLease.current(store.files.root, study)

    @classmethod
    def lives(cls, store: Store, study: str, token: object) -> bool:
        """Return True if the driver whose lease on a study has this number (token) is alive.

        If the store is a folder, the result is True for any number while a driver is alive whose
        record is damaged, so that others train and delete nothing that this driver may need.
        """
        if isinstance(store.files, Bucket):
            return BucketLease.lives(store.files, study, token)
        return FolderLease.lives(store.files.root, study, token)

    @classmethod
    def latest(cls, store: Store, study: str) -> Holder | None:
        """Return the record of a study's last driver (training process), which may have ended.

        None if the study never had a driver, or if the record is damaged.
        """
        if isinstance(store.files, Bucket):
            return BucketLease.latest(store.files, study)
        return FolderLease.latest(store.files.root, study)

    @classmethod
    def cut_off(cls, store: Store, study: str) -> Heartbeat | None:
        """Return the last progress report of a study's driver if it was killed during training.

        None if the newest driver is running, ended by itself or by an interrupt, or did not train;
        always None for a store in a bucket.
        """
        if isinstance(store.files, Bucket):
            return None
        return FolderLease.cut_off(store.files.root, study)

    @property
    def holder(self) -> Holder:
        """The stored record of this process as the driver of the study."""
        return self._held.holder

    @property
    def token(self) -> int:
        """Number of this lease; the lease of each later driver has a larger number."""
        return self.holder.token

    def is_held(self) -> bool:
        """Return True if this process certainly still has the lease.

        The caller checks this before it writes to MLflow.
        """
        return self._held.is_held()

    def write_progress(
        self, running: Sequence[RunningRun], seconds_left: float | None = None
    ) -> None:
        """Publish the runs in training for `mixsweep status`; call this about once a second."""
        self._held.write_progress(running, seconds_left)

    def require_held(self) -> None:
        """Raise `StudyLostError` if another driver has taken over the study."""
        if self._held.is_lost:
            raise self._held.lost()

    def release(self) -> None:
        """End the lease, so that another driver can train the study; a second call does nothing."""
        self._held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
        if self._held.is_lost:
            raise self._held.lost() from error


def read_progress(store: Store, study: str) -> Heartbeat | None:
    """Return the newest progress report of the driver that trains a study now.

    The report lists the runs in training. None if no driver is alive, or if it has not reported
    progress yet.
    """
    if isinstance(store.files, Bucket):
        return BucketLease.progress(store.files, study)
    return FolderLease.progress(store.files.root, study)
