import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import mlflow.pytorch
import pytest
import torch
from mlflow.models import Model
from torch import Tensor, nn

from sweeps.tracking.connection import is_refusal
from sweeps.tracking.experiment import Experiment, export_network

pytestmark = pytest.mark.filterwarnings("ignore")  # torch.export and MLflow warn of their own


class Halves(nn.Module):
    """A network from three numbers to two, which differs between training and evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.dropout = nn.Dropout(0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.dropout(self.linear(inputs)) / 2


@pytest.fixture(scope="module")
def network() -> nn.Module:
    return Halves().eval()


@pytest.fixture(scope="module")
def exported(network: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model]:
    folder = tmp_path_factory.mktemp("exports") / "model"
    return folder, export_network(network, torch.ones(2, 3), folder)


def test_an_exported_network_contains_no_project_code_and_no_pickled_module(
    exported: tuple[Path, Model],
) -> None:
    """The loaded network is a graph, which does not need its original class."""
    folder, described = exported
    assert described.flavors["pytorch"].get("code") is None
    loaded = mlflow.pytorch.load_model(str(folder))
    assert isinstance(loaded, torch.fx.GraphModule)
    assert not any(isinstance(part, Halves) for part in loaded.modules())
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path.suffix for path in files if zipfile.is_zipfile(path)] == [".pt2"]
    written = b"".join(path.read_bytes() for path in files if path.suffix != ".pt2")
    assert Path(__file__).stem.encode() not in written


ANSWERS = (
    b"{}", b"[]", b"hello", b"null", b"<html></html>", b"", b"3", b'{"experiment": []}',
    b'{"experiment": {"name": "study", "experiment_id": "1"}}',
)  # fmt: skip


@pytest.fixture(params=ANSWERS)
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a server that gives one answer to every request."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(200)
            self.send_header("content-length", str(len(request.param)))
            self.end_headers()
            self.wfile.write(request.param)

        do_POST = do_GET  # noqa: N815  the name that http.server calls

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as started:
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{started.server_port}"
        started.shutdown()


def test_an_invalid_answer_of_a_server_is_a_refusal(server: str) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011  MLflow's own or ours
        Experiment.open(server, "study", artifact_location=None).bring(
            "sweep", ("study", "c"), {}, first_tags={}, params={}
        )
    assert is_refusal(refused.value)
