"""Mirror: an HTTP proxy that replaces the download servers of Fashion-MNIST."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def mirror(folder: Path) -> Iterator[tuple[Mapping[str, str], list[str]]]:
    """Serve each file of a folder as `<name>.gz`, under any host name.

    Yields:
        The environment of its clients, and the list of names requested so far.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            asked.append(name)
            content = gzip.compress((folder / name.removesuffix(".gz")).read_bytes(), 1)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield {"http_proxy": url, "no_proxy": "127.0.0.1,localhost"}, asked
        finally:
            server.shutdown()
            thread.join()
