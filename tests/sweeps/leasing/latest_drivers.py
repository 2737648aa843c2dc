"""Latest driver: a lease names it, whatever store keeps the lease."""

from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease


def assert_the_latest_driver_is_known(store: Store) -> None:
    """Check that the second of two drivers is named while it lives and after its end."""
    assert Lease.latest(store, "table1") is None
    for command in ("first", "second"):
        with Lease.acquire(store, "table1", command) as lease:
            assert Lease.latest(store, "table1") == lease.holder
    found = Lease.latest(store, "table1")
    assert found is not None
    assert (found.command, found.token) == ("second", 2)
