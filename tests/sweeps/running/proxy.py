"""A real reverse proxy, nginx, before a Ray cluster: with TLS of an own authority, and a login."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import free_port, listens, running

NGINX, OPENSSL = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin"), "openssl"
needs_nginx = pytest.mark.skipif(
    NGINX is None or shutil.which(OPENSSL) is None,
    reason="NOT CHECKED: no nginx or no openssl on this machine",
)
LOGIN = "Basic bWU6c3dvcmRmaXNo"
"""me:swordfish"""

_CONFIG = """
daemon off; master_process off; error_log {folder}/error.log; pid {folder}/pid;
events {{}}
http {{
  access_log off; client_max_body_size 0;
  client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t;
  uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t;
  proxy_http_version 1.1; proxy_read_timeout 600s;
  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/server.pem;
    ssl_certificate_key {folder}/server.key;
    location /basic/ {{
      auth_basic "Ray of the lab"; auth_basic_user_file {folder}/users;
      proxy_set_header Authorization ""; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade; proxy_pass {cluster}/;
    }}
  }}
}}
"""


@contextmanager
def proxy(cluster: str, folder: Path) -> Iterator[str]:
    """Start nginx on the loopback, before a cluster with a given URL; yield its own.

    The certificate of the authority that signed the proxy's is the file `ca.pem` in the folder.
    """
    port = free_port()
    certify(folder)
    (folder / "users").write_text("me:{PLAIN}swordfish\n")
    config = folder / "nginx.conf"
    config.write_text(_CONFIG.format(folder=folder, port=port, cluster=cluster))
    assert NGINX is not None
    command = [NGINX, "-p", str(folder), "-e", str(folder / "e"), "-c", str(config)]
    with running(command, lambda: listens(port)):
        yield f"https://127.0.0.1:{port}"


def certify(folder: Path) -> None:
    """Write the certificate of an authority, and one that it signed for the loopback."""
    new = [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
           "-nodes", "-days", "2"]  # fmt: skip
    for name, given in {
        "ca": ["-subj", "/CN=the lab"],
        "server": [
            "-subj", "/CN=ray", "-addext", "subjectAltName=IP:127.0.0.1",
            "-addext", "basicConstraints=critical,CA:FALSE", "-CA", "ca.pem", "-CAkey", "ca.key",
        ],
    }.items():  # fmt: skip
        files = ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        subprocess.run([*new, *given, *files], cwd=folder, check=True, capture_output=True)
