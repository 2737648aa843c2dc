"""A server that answers 200 to everything is reported as no MLflow server."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from sweeps.tracking.connection import is_refusal
from sweeps.tracking.experiment import Experiment

ANSWERS = (
    b"{}", b"[]", b"hello", b"null", b"<html></html>", b"", b"3", b'{"experiment": []}',
    b'{"experiment": {"name": "study", "experiment_id": "1"}}',
)  # fmt: skip


@pytest.fixture
def server() -> Iterator[Callable[[bytes], str]]:
    with ExitStack() as servers:

        def start(answer: bytes) -> str:
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    self.rfile.read(int(self.headers.get("content-length") or 0))
                    self.send_response(200)
                    self.send_header("content-length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

                do_POST = do_GET  # noqa: N815  the name that http.server calls

                def log_message(self, *_: object) -> None:
                    pass

            started = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            servers.callback(started.server_close)
            servers.callback(started.shutdown)
            threading.Thread(target=started.serve_forever, daemon=True).start()
            return f"http://127.0.0.1:{started.server_port}"

        yield start


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_invalid_answer_of_a_server_is_a_refusal(
    server: Callable[[bytes], str], answer: bytes
) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011  MLflow's own or ours
        Experiment.open(server(answer), "study", artifact_location=None).bring(
            "sweep", ("study", "c"), {}, first_tags={}, params={}
        )
    assert is_refusal(refused.value)
