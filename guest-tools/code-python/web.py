"""Requests of programs that were granted domains, through the host's gate: `requests`, `urllib.request` and `fetch`."""

import email.message
import http.client
import io
import json
import types as python_types
import urllib.error
import urllib.parse
import urllib.request
import urllib.response

from componentize_py_types import Err
from wit_world.imports import outbound, outgoing_handler, types
from wit_world.imports.types import (
    Fields, IncomingBody, Method_Other, OutgoingBody, OutgoingRequest, Scheme_Http, Scheme_Https,
)

_CHUNK = 4096
_MAX_REDIRECTS = 10


class Refused(PermissionError):
    """The gate refused a request."""


def _head(target, method, headers, length):
    fields = [(name, str(value).encode("latin-1", "replace")) for name, value in headers]
    if length is not None:
        fields.append(("content-length", str(length).encode()))
    request = OutgoingRequest(Fields.from_list(fields))
    request.set_method(Method_Other(method))
    request.set_scheme(Scheme_Https() if target.scheme == "https" else Scheme_Http())
    request.set_authority(target.netloc)
    path = urllib.parse.quote(target.path or "/", safe="/%:@!$&'()*+,;=~-._<>")
    request.set_path_with_query(f"{path}?{target.query}" if target.query else path)
    return request


def _answered(future):
    pollable = future.subscribe()
    pollable.block()
    answer = future.get()
    answer = answer.value if hasattr(answer, "value") else answer
    return answer.value if hasattr(answer, "value") and not isinstance(answer, Err) else answer


def _failed(error):
    refusal = outbound.last_refusal()
    if refusal is not None:
        return Refused(f"{refusal.reason} ({refusal.rule}); {refusal.remedy}")
    code = getattr(error, "value", error)
    detail = getattr(code, "value", None)
    return ConnectionError(f"{type(code).__name__.removeprefix('ErrorCode_')}{f': {detail}' if detail else ''}")


def _send(method, url, headers, body):
    """One request: status, headers and body."""
    target = urllib.parse.urlsplit(url)
    if target.scheme not in ("http", "https") or not target.netloc:
        raise ValueError(f"not an address that can be requested: {url!r}")
    try:
        request = _head(target, method, headers, len(body) if body else None)
        outgoing = request.body()
        future = outgoing_handler.handle(request, None)
        if body:
            stream = outgoing.write()
            for at in range(0, len(body), _CHUNK):
                stream.blocking_write_and_flush(body[at : at + _CHUNK])
            stream.__exit__(None, None, None)
        OutgoingBody.finish(outgoing, None)
        response = _answered(future)
        if isinstance(response, Err):
            raise response
    except Err as error:
        raise _failed(error) from None
    fields = [(name, value.decode("latin-1")) for name, value in response.headers().entries()]
    status, parts = response.status(), []
    incoming = response.consume()
    stream = incoming.stream()
    while True:
        try:
            parts.append(stream.blocking_read(65536))
        except Err as error:
            if type(error.value).__name__ != "StreamError_Closed":
                raise _failed(error) from None
            break
    stream.__exit__(None, None, None)
    IncomingBody.finish(incoming)
    return status, fields, b"".join(parts)


class Response:
    """An answer, as `requests` gives it."""

    def __init__(self, status, fields, content, url, history):
        self.status_code, self.url, self.content, self.history = status, url, content, history
        self.headers = Headers(fields)
        self.reason = http.client.responses.get(status, "")
        self.ok = status < 400
        self.encoding = self.headers.get("content-type", "").partition("charset=")[2].strip('"; ') or "utf-8"

    @property
    def text(self):
        try:
            return self.content.decode(self.encoding, "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")

    def json(self, **named):
        return json.loads(self.content, **named)

    def raise_for_status(self):
        if not self.ok:
            raise HTTPError(f"{self.status_code} {self.reason} for url: {self.url}", response=self)

    def iter_lines(self):
        yield from self.text.splitlines()

    def iter_content(self, chunk_size=1):
        for at in range(0, len(self.content), chunk_size):
            yield self.content[at : at + chunk_size]

    def __bool__(self):
        return self.ok

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return False

    def __repr__(self):
        return f"<Response [{self.status_code}]>"


class Headers(dict):
    """Names of headers in any case."""

    def __init__(self, fields=()):
        super().__init__()
        for name, value in fields:
            self[name] = f"{self[name]}, {value}" if name in self else value

    def __getitem__(self, name):
        return super().__getitem__(name.lower())

    def __setitem__(self, name, value):
        super().__setitem__(name.lower(), value)

    def __contains__(self, name):
        return super().__contains__(name.lower())

    def get(self, name, default=None):
        return super().get(name.lower(), default)


class RequestException(OSError):
    """The base of the errors of `requests`."""

    def __init__(self, *arguments, response=None):
        super().__init__(*arguments)
        self.response = response


class HTTPError(RequestException):
    """A status that says the request failed."""


def request(method, url, *, params=None, data=None, json_body=None, headers=None, auth=None, cookies=None, timeout=None,
            allow_redirects=True, **_others):
    """A request, and those of its redirects."""
    sent = Headers((headers or {}).items())
    if params:
        query = params if isinstance(params, str) else urllib.parse.urlencode(params, doseq=True)
        url += ("&" if "?" in url else "?") + query
    body = b""
    if json_body is not None:
        body = json.dumps(json_body).encode()
        sent.setdefault("content-type", "application/json")
    elif isinstance(data, (dict, list, tuple)):
        body = urllib.parse.urlencode(data, doseq=True).encode()
        sent.setdefault("content-type", "application/x-www-form-urlencoded")
    elif data is not None:
        body = data.encode() if isinstance(data, str) else bytes(data.read() if hasattr(data, "read") else data)
    if cookies:
        sent["cookie"] = "; ".join(f"{name}={value}" for name, value in dict(cookies).items())
    if isinstance(auth, (tuple, list)):
        import base64

        sent["authorization"] = "Basic " + base64.b64encode(":".join(auth).encode()).decode()
    history, method = [], method.upper()
    while True:
        status, fields, content = _send(method, url, list(sent.items()), body)
        answer = Response(status, fields, content, url, history)
        place = answer.headers.get("location")
        if not allow_redirects or status not in (301, 302, 303, 307, 308) or place is None:
            return answer
        if len(history) == _MAX_REDIRECTS:
            raise RequestException(f"more than {_MAX_REDIRECTS} redirects")
        history = [*history, answer]
        following = urllib.parse.urljoin(url, place)
        if urllib.parse.urlsplit(following).netloc != urllib.parse.urlsplit(url).netloc:
            for name in ("authorization", "cookie"):
                sent.pop(name, None)
        url = following
        if status == 303 or (status in (301, 302) and method == "POST"):
            method, body = "GET", b""
            sent.pop("content-type", None)


def _requests(method, url, **named):
    if "json" in named:
        named["json_body"] = named.pop("json")
    return request(method, url, **named)


class Session:
    """Headers that each request of it has."""

    def __init__(self):
        self.headers, self.params, self.auth, self.cookies = {}, {}, None, {}

    def request(self, method, url, **named):
        named["headers"] = {**self.headers, **(named.get("headers") or {})}
        if self.params and not isinstance(named.get("params"), str):
            named["params"] = {**self.params, **(named.get("params") or {})}
        named.setdefault("auth", self.auth)
        named.setdefault("cookies", self.cookies)
        return _requests(method, url, **named)

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return False


def _verb(method):
    def send(url, *arguments, **named):
        if arguments:
            named["params" if method == "GET" else "data"] = arguments[0]
        return _requests(method, url, **named)

    def of_session(self, url, *arguments, **named):
        if arguments:
            named["params" if method == "GET" else "data"] = arguments[0]
        return self.request(method, url, **named)

    return send, of_session


def _urlopen(url, data=None, timeout=None, **_others):
    """`urllib.request.urlopen`."""
    asked = url if isinstance(url, urllib.request.Request) else urllib.request.Request(url, data)
    body = asked.data if asked.data is not None else data
    answer = request(asked.get_method(), asked.full_url, data=body, headers=dict(asked.header_items()))
    fields = email.message.Message()
    for name, value in answer.headers.items():
        fields[name] = value
    if not answer.ok:
        raise urllib.error.HTTPError(answer.url, answer.status_code, answer.reason, fields, io.BytesIO(answer.content))
    opened = urllib.response.addinfourl(io.BytesIO(answer.content), fields, answer.url, answer.status_code)
    opened.reason = answer.reason
    return opened


def modules():
    """What is importable by programs with domains, by name."""
    module = python_types.ModuleType("requests", "The part of `requests` that the sandbox has.")
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        send, of_session = _verb(method)
        setattr(module, method.lower(), send)
        setattr(Session, method.lower(), of_session)
    errors = python_types.ModuleType("requests.exceptions")
    for holder in (module, errors):
        holder.RequestException, holder.HTTPError, holder.ConnectionError = RequestException, HTTPError, ConnectionError
        holder.Timeout, holder.JSONDecodeError = TimeoutError, json.JSONDecodeError
    module.request, module.Session, module.session, module.Response = _requests, Session, Session, Response
    module.exceptions = errors
    return {"requests": module, "requests.exceptions": errors}


def open_up():
    """Gives a program its requests."""
    import sys

    sys.modules.update(modules())
    urllib.request.urlopen = _urlopen
