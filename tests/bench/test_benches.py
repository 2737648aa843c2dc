"""`make bench` runs all benches; the stub of the trainer fits the present trainer."""

import random
from pathlib import Path

import pytest

from mixup_core.images import training
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from sweeps.running import attempt, storing
from tests.bench import __main__ as benches
from tests.bench import stub
from tests.bench.stored import made_up_metrics


def test_every_bench_that_publishes_results_is_in_the_list_to_run() -> None:
    publishing = {
        file.stem
        for file in Path(__file__).parent.glob("*.py")
        if 'kind="bench' in file.read_text() and file != Path(__file__)
    }
    assert publishing == set(benches.LEAST)


def test_the_stub_replaces_the_trainer_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (training.Training, "gradually"), (attempt, "train"), (storing, "STORE_AT_LEAST_EVERY"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, getattr(module, name))  # restored after the test
    monkeypatch.setenv(stub.CHATTY, "stored")
    stub.install()
    config = TrainConfig(data=DataConfig(name="digits"), epochs=1, batch_size=7)
    (record,) = training.start(config, None, "cpu")
    assert record.metrics == made_up_metrics(random.Random("0 0"), config, 0)
