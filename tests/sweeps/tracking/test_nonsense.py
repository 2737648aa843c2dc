"""A server that answers 200 to everything is reported as no MLflow server."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from sweeps.study.study import Study
from sweeps.tracking.connection import is_final_refusal, is_refusal
from sweeps.tracking.experiment import Experiment
from sweeps.tracking.study_log import StudyLog
from sweeps.tracking.tracker import Tracker
from tests.sweeps.tracked import results_of, summarise

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


def test_a_launch_warns_once_about_a_server_that_is_not_mlflow(
    server: Callable[[bytes], str], study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = Tracker(StudyLog(study, server(b"{}"), summariser=lambda study, arm: summarise))
    tracker.start(results_of(study, 1, 1, 1, 1))
    tracker.close([])
    (warning,) = caplog.messages
    assert warning.startswith("nothing more is written to MLflow; the store keeps the data: ")
    assert tracker.was_refused


def test_an_answer_that_is_not_json_is_not_final_because_a_proxy_may_have_sent_it(
    server: Callable[[bytes], str],
) -> None:
    with pytest.raises(Exception, match="not in a valid JSON format") as refused:
        Experiment.open(server(b"hello"), "study", artifact_location=None)
    assert is_refusal(refused.value)
    assert not is_final_refusal(refused.value)
