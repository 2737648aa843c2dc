"""A simulated dashboard of a Ray cluster, which answers as a test says."""

import asyncio
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import WSCloseCode, web

RUNNING = {"type": "SUBMISSION", "status": "RUNNING", "entrypoint": ""}


def ended(status: str = "FAILED", **given: Any) -> dict[str, Any]:
    """Return the status that a cluster reports for an ended job."""
    return {**RUNNING, "status": status, **given}


@dataclass(kw_only=True)
class RayServer:
    """Answers and received requests of the server; both may change while it runs."""

    token: str = "5a"
    """Token that is required; empty if none is."""
    login: str = ""
    """Header `Authorization` that a proxy requires and does not pass on; empty without a proxy."""
    jobs: Sequence[dict[str, Any]] = ()
    """All jobs."""
    states: list[dict[str, Any] | int] = field(default_factory=list)
    """Successive states of the followed job, or HTTP statuses in their place; the last one stays.
    """
    logs: list[Sequence[str]] = field(default_factory=list)
    """Log of the job for each listener, in parts; the last one stays."""
    address: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the last request."""
    submitted: list[dict[str, Any]] = field(default_factory=list)
    uploaded: list[bytes] = field(default_factory=list)
    num_asked: int = 0
    """Number of requests for the state of the job."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        path, self.headers = request.path, request.headers
        if (refusal := self._refusal()) is not None:
            return refusal
        if path == "/api/version":
            return web.json_response({"ray_version": "2.60.0"})
        if path.startswith("/api/packages/"):
            if request.method == "GET":
                return web.Response(status=404)
            self.uploaded.append(await request.read())
            return web.Response()
        if path == "/api/jobs/":
            if request.method == "GET":
                return web.json_response(list(self.jobs))
            self.submitted.append(await request.json())
            return web.json_response({"job_id": "a", "submission_id": "a"})
        if path.endswith("/logs/tail"):
            return await self._log(request)
        self.num_asked += 1
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return web.Response(status=state) if isinstance(state, int) else web.json_response(state)

    def _refusal(self) -> web.Response | None:
        authorization = self.headers.get("Authorization")
        if self.login and authorization != self.login:
            realm = {"WWW-Authenticate": 'Basic realm="Ray of the lab"'}
            return web.Response(status=401, headers=realm)
        given = self.headers.get("X-Ray-Authorization") if self.login else authorization
        if self.token and not given:
            return web.Response(status=401, text="Unauthorized: Missing authentication token")
        if self.token and given != f"Bearer {self.token}":
            return web.Response(status=403, text="Forbidden: Invalid authentication token")
        return None

    async def _log(self, request: web.Request) -> web.StreamResponse:
        log = self.logs.pop(0) if len(self.logs) > 1 else self.logs[0] if self.logs else ()
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for part in log:
            await socket.send_str(part)
        await socket.close(code=WSCloseCode.OK)
        return socket


@contextmanager
def ray_server(files: tuple[Path, Path] | None = None, **script: Any) -> Iterator[RayServer]:
    """Serve on the loopback, in a thread of this process, until the end of the `with`.

    With the files of a certificate and of its key, serve by TLS.
    """
    server, tls = RayServer(**script), None
    if files is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*files)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> web.AppRunner:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", server.answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        host, port = runner.addresses[0][:2]
        server.address = f"{'http' if tls is None else 'https'}://{host}:{port}"
        return runner

    runner = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
