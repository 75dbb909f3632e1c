"""A server on this machine alone, which answers one page.

Other pages in the same browser must not reach it. So every address holds a secret, requests must
name this machine as their host (a foreign name that was made to point here is refused), and
requests that another site started are refused. No path of a request is ever opened: there is one
document, which is made when the server starts, and one address for questions.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from privasso._documents import Fields
from privasso.explore._answers import answer
from privasso.explore._page import page
from privasso.explore._settings import Settings
from privasso.model import GivenCovariance

_ADDRESS = "127.0.0.1"
#: A question with 10,000 scales has about 200 kB.
_MOST_BYTES = 1_000_000


class Explorer(ThreadingHTTPServer):
    """The server; it listens when it is made and answers within `serve_forever`.

    `settings`: what the page shows first. `port`: port to listen on; 0 takes a free one.
    """

    daemon_threads = True
    request_queue_size = 256  # a browser with many tabs is not turned away

    def __init__(self, settings: Settings, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        super().__init__((_ADDRESS, port), _Handler)
        self.document, self.policy = page(settings)
        self.covariance = settings.covariance

    def handle_error(self, request, client_address) -> None:
        """Say nothing of a browser that went away; anything else is an error as usual."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{_ADDRESS}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, str]:
        """The names under which this machine may be asked."""
        return f"{_ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "privasso", ""
    timeout = 60
    disable_nagle_algorithm = True  # small answers must not wait for the next packet

    @property
    def explorer(self) -> Explorer:
        return cast(Explorer, self.server)

    def do_GET(self) -> None:
        if not self._allowed():
            return None
        if self.path != f"/{self.explorer.token}/":
            return self._refuse(404, "there is nothing here")
        self._send(200, self.explorer.document.encode(), "text/html; charset=utf-8")
        return None

    def do_POST(self) -> None:
        if not self._allowed():
            return None
        if self.path != f"/{self.explorer.token}/ask":
            return self._refuse(404, "there is nothing here")
        if self.headers.get("Content-Type") != "application/json":
            return self._refuse(415, "a question is sent as application/json")
        length = self.headers.get("Content-Length", "")
        if re.fullmatch("[0-9]{1,9}", length) is None or int(length) > _MOST_BYTES:
            return self._refuse(413, f"a question has at most {_MOST_BYTES} bytes")
        body = self.rfile.read(int(length))
        try:
            question = Fields(json.loads(body), "question")
            what, asked = question.text("what"), question.take("settings")
            question.end()
        except (ValueError, RecursionError):
            return self._refuse(400, "this is no question")
        return self._send(
            200, _reply(what, asked, self.explorer.covariance).encode(), "application/json"
        )

    def log_message(self, format: str, *args: object) -> None:
        pass  # the address holds the secret

    def _allowed(self) -> bool:
        """Refuse requests that do not come from the page itself."""
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        token = self.path.partition("/")[2].partition("/")[0]
        if host not in self.explorer.hosts or origin not in (None, f"http://{host}"):
            self._refuse(403, "this page is for this machine alone")
        elif self._from_elsewhere():
            self._refuse(403, "this page is not for other sites")
        elif not hmac.compare_digest(token.encode(), self.explorer.token.encode()):
            self._refuse(404, "the address is the one that privasso explore has printed")
        else:
            return True
        return False

    def _from_elsewhere(self) -> bool:
        """Whether another site asks; one that opens the page itself needs its address, too."""
        opens = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        if self.command == "GET" and all(self.headers.get(x) == y for x, y in opens.items()):
            return False
        return self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")

    def _refuse(self, code: int, why: str) -> None:
        self.close_connection = True  # what it sent may not have been read
        self._send(code, why.encode(), "text/plain; charset=utf-8")

    def _send(self, code: int, body: bytes, kind: str) -> None:
        self.send_response(code)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": self.explorer.policy,
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _reply(what: str, asked: object, covariance: GivenCovariance | None) -> str:
    """The answer as JSON; settings that make no sense are refused with a sentence for the page."""
    try:
        found = answer(what, Settings.from_dict(asked, covariance))
    except ValueError as error:
        found = {"refused": str(error)}
    except ArithmeticError:
        found = {"refused": "these numbers are too large or too small"}
    return json.dumps(found, allow_nan=False)
