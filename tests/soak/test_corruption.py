import random
from pathlib import Path

from tests.soak.corruption import cut, flip, swap

CONTENT = bytes(range(256))


def test_flip_changes_one_bit_cut_shortens_and_swap_replaces_the_file(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    other.write_bytes(b"other")
    for seed in range(50):
        rng = random.Random(seed)
        path.write_bytes(CONTENT)
        flip(path, other, rng)
        flipped = path.read_bytes()
        assert sum((a ^ b).bit_count() for a, b in zip(CONTENT, flipped, strict=True)) == 1
        path.write_bytes(CONTENT)
        cut(path, other, rng)
        assert len(path.read_bytes()) < len(CONTENT)
        assert CONTENT.startswith(path.read_bytes())
    swap(path, other, rng)
    assert path.read_bytes() == b"other"
