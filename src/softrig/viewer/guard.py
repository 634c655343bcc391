"""Who may come in: the token, the right host, and no page of another site. One gate for http and websockets alike."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
    "style-src 'self' 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOCAL = ("127.0.0.1", "localhost", "::1")
ANYWHERE = ("0.0.0.0", "::", "")


def new_token() -> str:
    """What nobody can guess."""
    return secrets.token_urlsafe(24)


def cookie_name(port: int) -> str:
    """Cookies do not know ports, so their name does: two viewers must not log each other out."""
    return f"softrig_{port}"


class Guard:
    """ASGI middleware: refuses with 403 whoever does not have the token or comes by another name.

    A page of another site can make a browser send requests here, and a name of another site can be made to point here;
    so the `Host` must be ours, and the `Origin`, where there is one.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int, host: str) -> None:
        self._app = app
        self._token, self._port = token.encode(), port
        self._cookie = cookie_name(port)
        self._names = {*LOCAL, host.lower().strip("[]")} - set(ANYWHERE)
        self._any_address = host.strip("[]") in ANYWHERE
        if self._any_address:
            self._names.add(socket.gethostname().lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through or refuse."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        reason = self._refusal(scope)
        if scope["type"] == "websocket":
            if reason is None:
                await self._app(scope, receive, send)
            else:
                # Before it was accepted: the browser is answered 403.
                await send({"type": "websocket.close", "code": 1008, "reason": reason})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if reason is None and self._query_token(scope) is not None:
                    headers.append("Set-Cookie", self._new_cookie())
            await send(message)

        if reason is None:
            await self._app(scope, receive, send_with_headers)
        else:
            await PlainTextResponse(f"{reason}\n", 403)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> str | None:
        """Why somebody may not come in; None: they may."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_ours(f"//{hosts[0]}"):
            return "This viewer is not known by that name."
        if len(origins) > 1 or (origins and not self._is_ours(origins[0])):
            return "Pages of other sites may not look in."
        given = [self._query_token(scope), *self._cookie_tokens(headers.getlist("cookie"))]
        # All are compared, each in constant time.
        fits = [hmac.compare_digest(each.encode(), self._token) for each in given if each is not None]
        return None if any(fits) else "The token is missing or wrong: use the whole address that softrig printed."

    def _is_ours(self, address: str) -> bool:
        """Whether an origin, or "//" and a host, names this server."""
        try:
            parts = urlsplit(address)
            name, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return False
        if parts.scheme not in ("", "http") or parts.path or parts.username is not None or parts.query:
            return False
        if (port or 80) != self._port:
            return False
        # An address in numbers cannot be made to point here by anybody who does not own the machine.
        return name in self._names or (self._any_address and _is_address(name))

    def _query_token(self, scope: Scope) -> str | None:
        try:
            found = parse_qs(scope["query_string"].decode("ascii"), max_num_fields=20).get("token", [])
        except ValueError:
            return None
        return found[0] if len(found) == 1 else None

    def _cookie_tokens(self, headers: Iterable[str]) -> list[str]:
        tokens = []
        for header in headers:
            try:
                cookies = SimpleCookie(header)
            except CookieError:
                continue
            if self._cookie in cookies:
                tokens.append(cookies[self._cookie].value)
        return tokens

    def _new_cookie(self) -> str:
        return f"{self._cookie}={self._token.decode()}; Path=/; HttpOnly; SameSite=Strict"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
