import hashlib

from mixup_core.seeding import Seeds, stream_seed


def test_the_seed_of_a_stream_is_the_start_of_a_sha256_hash() -> None:
    digest = hashlib.sha256(b"3/mixing/7").hexdigest()
    assert stream_seed(3, "mixing", 7) == int(digest[:16], 16) // 2
    assert 0 <= stream_seed(3, "mixing", 7) < 2**63


def test_streams_differ_by_seed_purpose_and_epoch() -> None:
    seeds = {
        stream_seed(seed, purpose, epoch)
        for seed in range(3)
        for purpose in ("mixing", "batch order")
        for epoch in range(3)
    }
    assert len(seeds) == 18


def test_a_seed_can_apply_to_selected_purposes_only() -> None:
    seeds = Seeds(own=5, purposes=frozenset({"mixing"}))
    assert stream_seed(seeds, "mixing", 3) == stream_seed(5, "mixing", 3)
    assert stream_seed(seeds, "batch order", 3) == stream_seed(0, "batch order", 3)
    other = Seeds(own=5, purposes=frozenset({"mixing"}), others=7)
    assert stream_seed(other, "batch order") == stream_seed(7, "batch order")
