"""Docker image: every step of the Dockerfile runs in a folder, and a study trains inside.

`make image` downloads all packages, about 3 GB, and needs 9 GB of disk.
"""

import os
import re
from pathlib import Path

import pytest

from tests.cluster.scratch_image import ScratchImage, missing_programs
from tests.soak.findings import publish

REPOSITORY = Path(__file__).parents[2]
TINY = "--set seeds=1 --set base.epochs=2"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_step_of_the_dockerfile_runs_and_a_study_trains_in_the_image(tmp_path: Path) -> None:
    if missing := missing_programs():
        pytest.skip(f"not here: {', '.join(missing)}; NO IMAGE WAS BUILT")
    image = ScratchImage.build(REPOSITORY, tmp_path / "root")

    assert image.run("id", "--user", "--name").strip() == "ray"
    health = image.run(*image.check)
    assert image.run("sh", "-c", "touch /opt/venv/a || echo refused").endswith("refused\n")
    programs = "python ray mlflow mixsweep git gcc make wget bash"
    found = image.run("sh", "-c", f"for name in {programs}; do command -v $name; done").split()
    assert [Path(path).name for path in found] == programs.split()
    assert found[0] == "/opt/venv/bin/python"
    assert not list((image.root / "opt" / "mixsweep" / "reports").glob("published/*"))

    inline = image.run("sh", "-c", f"mixsweep run digits {TINY} --engine inline")
    assert "3 runs to train" in inline
    by_ray = image.run("sh", "-c", f"mixsweep run digits {TINY} --home other --slots 2")
    assert "3 runs to train" in by_ray
    assert "nothing to train" in image.run("sh", "-c", f"mixsweep run digits {TINY} --home other")
    tables = [image.root / "runs" / home / "reports/digits/table.csv" for home in (".", "other")]
    assert tables[0].read_bytes() == tables[1].read_bytes()

    packages = image.run("/opt/venv/bin/pip", "list", "--format=freeze").splitlines()
    size = sum(path.lstat().st_size for path in image.root.rglob("*") if path.is_file())
    if os.environ.get("PUBLISH"):
        publish(
            "image",
            "Dockerfile: each step in a scratch root of Debian 12 by debootstrap, then two studies",
            {
                **{f"seconds of {name}": seconds for name, seconds in image.seconds.items()},
                "packages": len(packages),
                "size, MB": round(size / 1e6),
                "health check": re.sub(r"\s+", " ", health.strip().splitlines()[0]),
                "user": "ray, who may not write to /opt/venv",
                "runs inline, runs by Ray": "3, 3; equal tables",
                "not tried, since no Docker is here": "layers, the CUDA base, a registry, a GPU",
            },
            kind="clusters",
        )
