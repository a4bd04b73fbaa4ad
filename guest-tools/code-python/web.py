"""Requests of programs that were granted domains, through the host's gate: `requests` and `urllib.request`.

The server that answers is hostile: it names the next URL. So no credential goes to another origin with a redirect, in no part
of a request, and a body has a bound.
"""

import base64
import email.message
import http.client
import http.cookies
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
    Fields, IncomingBody, Method_Other, OutgoingBody, OutgoingRequest, RequestOptions, Scheme_Http, Scheme_Https,
)

_CHUNK = 4096
_MAX_REDIRECTS = 10
# Bytes of a body: it is in memory twice while it is put together.
_MAX_BODY = 8 << 20
# Headers that the gate sets.
_OF_THE_GATE = frozenset(("host", "connection", "keep-alive", "content-length", "transfer-encoding", "upgrade"))
_REFUSALS = frozenset(("HttpRequestDenied", "DestinationIpProhibited", "HttpRequestUriInvalid"))
_SAFE = "/%:@!$&'()*+,;=~-._<>"


class RequestException(OSError):
    """The base of the errors of `requests`."""

    def __init__(self, *arguments, response=None):
        super().__init__(*arguments)
        self.response = response


class HTTPError(RequestException):
    """A status that says the request failed."""


class TooManyRedirects(RequestException):
    """A redirect beyond the last that is followed."""


class InvalidURL(RequestException, ValueError):
    """Not an address that can be requested."""


class InvalidHeader(RequestException, ValueError):
    """A header that no request can have."""


class InvalidMethod(RequestException, ValueError):
    """Not the name of a method."""


class Refused(RequestException, PermissionError):
    """The gate refused a request."""


class Disconnected(RequestException, ConnectionError):
    """No whole answer came."""


class Timeout(RequestException, TimeoutError):
    """No answer came in time."""


def _set(error, setter, *values):
    """Sets a part of a request. The setters refuse an invalid one without a reason, so `error` has it."""
    try:
        setter(*values)
    except Err:
        raise error from None


def _head(target, method, headers, length):
    fields = Fields()
    for name, value in headers:
        if name not in _OF_THE_GATE:
            value = value if isinstance(value, bytes) else str(value).encode("latin-1", "replace")
            error = InvalidHeader(f"Invalid header {name!r}: its name or its value cannot be sent")
            _set(error, fields.append, name, value)
    if length is not None:
        fields.append("content-length", str(length).encode())
    request = OutgoingRequest(fields)
    _set(InvalidMethod(f"Invalid method {method!r}"), request.set_method, Method_Other(method))
    request.set_scheme(Scheme_Https() if target.scheme == "https" else Scheme_Http())
    invalid = f"Invalid URL {target.geturl()!r}"
    error = InvalidURL(f"{invalid}: {target.netloc!r} is not a host; outside ASCII a name has its `xn--` form")
    _set(error, request.set_authority, target.netloc)
    path, query = urllib.parse.quote(target.path or "/", safe=_SAFE), urllib.parse.quote(target.query, safe=_SAFE + "?[]")
    error = InvalidURL(f"{invalid}: its path or its query cannot be sent")
    _set(error, request.set_path_with_query, f"{path}?{query}" if query else path)
    return request


def _options(timeout):
    """The waits of a request in nanoseconds; `timeout` is in seconds, one for both or a pair."""
    connect, read = timeout if isinstance(timeout, (tuple, list)) else (timeout, timeout)
    options = RequestOptions()
    for wait, bound in (
        (connect, options.set_connect_timeout),
        (read, options.set_first_byte_timeout),
        (read, options.set_between_bytes_timeout),
    ):
        if wait is not None:
            bound(int(wait * 1_000_000_000))
    return options


def _answered(future):
    pollable = future.subscribe()
    pollable.block()
    answer = future.get()
    answer = answer.value if hasattr(answer, "value") else answer
    return answer.value if hasattr(answer, "value") and not isinstance(answer, Err) else answer


def _failed(error):
    code = getattr(error, "value", error)
    detail = getattr(code, "value", None)
    name = type(code).__name__.removeprefix("ErrorCode_")
    # The last refusal is that of an earlier request if this one failed for another reason.
    refusal = outbound.last_refusal() if name in _REFUSALS else None
    if refusal is not None:
        return Refused(f"{refusal.reason} ({refusal.rule}); {refusal.remedy}")
    return (Timeout if "Timeout" in name else Disconnected)(f"{name}{f': {detail}' if detail else ''}")


def _address(url, place=""):
    """The URL at `place`, relative to `url`, and its parts."""
    try:
        joined = urllib.parse.urljoin(url, place)
        parts = urllib.parse.urlsplit(joined)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return joined, parts
        if not parts.scheme:
            why = f"No scheme supplied. Perhaps you meant https://{joined}?"
        elif parts.scheme not in ("http", "https"):
            why = f"the scheme is {parts.scheme!r}, and only http and https can be requested"
        else:
            why = "there is no port 0" if parts.hostname else "No host supplied"
    except ValueError as error:
        why = error
    raise InvalidURL(f"Invalid URL {place or url!r}: {why}")


def _send(method, url, headers, body, timeout):
    """One request: status, headers and body."""
    try:
        request = _head(_address(url)[1], method, headers, len(body) if body else None)
        outgoing = request.body()
        future = outgoing_handler.handle(request, None if timeout is None else _options(timeout))
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
    status, parts, size = response.status(), [], 0
    incoming = response.consume()
    # A body outlives its stream, with an error too.
    with incoming.stream() as stream:
        while size <= _MAX_BODY:
            try:
                parts.append(stream.blocking_read(65536))
            except Err as error:
                if type(error.value).__name__ == "StreamError_Closed":
                    break
                code = types.http_error_code(error.value.value)
                raise _failed(error if code is None else Err(code)) from None
            size += len(parts[-1])
    if size > _MAX_BODY:
        raise RequestException(f"the body is larger than {_MAX_BODY} bytes")
    IncomingBody.finish(incoming)
    return status, fields, b"".join(parts)


class Response:
    """An answer, as `requests` gives it."""

    def __init__(self, status, fields, content, url, history):
        self.status_code, self.url, self.content, self.history = status, url, content, history
        self.headers, self.cookies = _joined(fields), Cookies()
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

    def iter_lines(self, decode_unicode=False, **_others):
        yield from (self.text if decode_unicode else self.content).splitlines()

    def iter_content(self, chunk_size=1, **_others):
        step = chunk_size or len(self.content) or 1
        for at in range(0, len(self.content), step):
            yield self.content[at : at + step]

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
        self.update(fields)

    def __getitem__(self, name):
        return super().__getitem__(name.lower())

    def __setitem__(self, name, value):
        super().__setitem__(name.lower(), value)

    def __delitem__(self, name):
        super().__delitem__(name.lower())

    def __contains__(self, name):
        return super().__contains__(name.lower())

    def get(self, name, default=None):
        return super().get(name.lower(), default)

    def pop(self, name, *default):
        return super().pop(name.lower(), *default)

    def setdefault(self, name, default=None):
        return super().setdefault(name.lower(), default)

    def update(self, fields=(), **named):
        for name, value in dict(fields, **named).items():
            self[name] = value


def _joined(fields):
    headers = Headers()
    for name, value in fields:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class Cookies(dict):
    """Cookies by name. Those of a server go back to its origin only."""

    def __init__(self, cookies=()):
        super().__init__(cookies)
        self._origins = {}

    def set(self, name, value, **_others):
        self[name] = value

    def get_dict(self, **_others):
        return dict(self)

    def _take(self, origin, fields):
        for name, value in fields:
            if name.lower() == "set-cookie":
                for morsel in http.cookies.SimpleCookie(value).values():
                    self[morsel.key], self._origins[morsel.key] = morsel.coded_value, origin
                    if morsel["max-age"] == "0":
                        del self[morsel.key]

    def _of(self, origin, own):
        return {name: value for name, value in self.items() if self._origins.get(name, own and origin) == origin}


class HTTPBasicAuth(tuple):
    """A name and a password."""

    def __new__(cls, username, password):
        return super().__new__(cls, (username, password))


def _encoded(values):
    """The pairs of a query or a form. What is `None` is left out."""
    if isinstance(values, (str, bytes)):
        return values if isinstance(values, str) else values.decode()
    pairs = values.items() if hasattr(values, "items") else values
    return urllib.parse.urlencode([(name, value) for name, value in pairs if value is not None], doseq=True)


def _origin(parts):
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _holds_credential(part):
    data = part if isinstance(part, bytes) else str(part).encode()
    return b"<credential:" in urllib.parse.unquote_to_bytes(data).lower()


def _leave_behind(headers, body, url):
    """Takes away what does not go to another origin."""
    for name, value in list(headers.items()):
        if name in ("authorization", "cookie", "proxy-authorization") or _holds_credential(value):
            del headers[name]
    if _holds_credential(body) or _holds_credential(url):
        host = urllib.parse.urlsplit(url).hostname
        raise RequestException(
            f"the server redirects to `{host}`, and the credential in the request does not follow to another origin"
        )


def request(method, url, *, params=None, data=None, json_body=None, headers=None, auth=None, cookies=None, timeout=None,
            allow_redirects=True, files=None, jar=None, **_others):
    """A request, and those of its redirects. `jar` has the cookies of a session."""
    if files:
        raise NotImplementedError("the sandbox's `requests` sends no `files`: send their content as `data`")
    sent = Headers({name: value for name, value in (headers or {}).items() if value is not None})
    if params:
        url = urllib.parse.urldefrag(url).url
        url += ("&" if "?" in url else "?") + _encoded(params)
    body = b""
    if hasattr(data, "read"):
        data = data.read()
    if isinstance(data, (str, bytes, bytearray)):
        body = data.encode() if isinstance(data, str) else bytes(data)
    elif data:
        body = _encoded(data).encode()
        sent.setdefault("content-type", "application/x-www-form-urlencoded")
    elif json_body is not None:
        body = json.dumps(json_body).encode()
        sent.setdefault("content-type", "application/json")
    if isinstance(auth, (tuple, list)):
        sent["authorization"] = "Basic " + base64.b64encode(":".join(auth).encode()).decode()
    elif auth is not None:
        raise TypeError("`auth` is a pair of a name and a password: the sandbox's `requests` has no other")
    url, parts = _address(url)
    jar = Cookies() if jar is None else jar
    history, method, header, own = [], method.upper(), sent.pop("cookie", None), True
    while True:
        origin = _origin(parts)
        values = {**jar._of(origin, own), **(cookies or {} if own else {})}
        cookie = (own and header) or "; ".join(f"{name}={value}" for name, value in values.items())
        fields = [*sent.items(), *([("cookie", cookie)] if cookie else [])]
        status, fields, content = _send(method, url, fields, body, timeout)
        answer = Response(status, fields, content, url, history)
        for kept in (answer.cookies, jar):
            kept._take(origin, fields)
        place = answer.headers.get("location")
        if not allow_redirects or status not in (301, 302, 303, 307, 308) or place is None:
            return answer
        if len(history) == _MAX_REDIRECTS:
            raise TooManyRedirects(f"more than {_MAX_REDIRECTS} redirects", response=answer)
        history = [*history, answer]
        url, parts = _address(url, place)
        if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
            method, body = "GET", b""
            for name in [name for name in sent if name.startswith("content-")]:
                del sent[name]
        if _origin(parts) != origin:
            own = False
            _leave_behind(sent, body, url)


def _requests(method, url, **named):
    if "json" in named:
        named["json_body"] = named.pop("json")
    return request(method, url, **named)


class Session:
    """What each request of it has, and the cookies that its servers set."""

    def __init__(self):
        self.headers, self.params, self.auth, self.cookies = Headers(), {}, None, Cookies()

    def request(self, method, url, **named):
        headers = Headers(self.headers)
        headers.update(named.get("headers") or {})
        params = named.get("params")
        if params is None or isinstance(params, dict):
            params = {**self.params, **(params or {})}
        if not isinstance(self.cookies, Cookies):
            self.cookies = Cookies(self.cookies)
        named.update(headers=headers, params=params, auth=named.get("auth") or self.auth, jar=self.cookies)
        return _requests(method, url, **named)

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return False


def _verb(method):
    def of_session(self, url, *arguments, **named):
        if arguments:
            named["params" if method == "GET" else "data"] = arguments[0]
        if method == "HEAD":
            named.setdefault("allow_redirects", False)
        return self.request(method, url, **named)

    return lambda url, *arguments, **named: of_session(Session(), url, *arguments, **named), of_session


def _urlopen(url, data=None, timeout=None, **_others):
    """`urllib.request.urlopen`."""
    asked = url if isinstance(url, urllib.request.Request) else urllib.request.Request(url, data)
    if data is not None:
        asked.data = data
    headers = Headers(asked.header_items())
    if asked.data is not None:
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
    try:
        answer = request(asked.get_method(), asked.full_url, data=asked.data, headers=headers, timeout=timeout)
    except (Disconnected, Timeout) as error:
        raise urllib.error.URLError(error) from None
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
        holder.RequestException, holder.HTTPError, holder.ConnectionError = RequestException, HTTPError, Disconnected
        holder.Timeout = holder.ConnectTimeout = holder.ReadTimeout = Timeout
        holder.TooManyRedirects, holder.JSONDecodeError = TooManyRedirects, json.JSONDecodeError
        holder.InvalidURL = holder.MissingSchema = holder.InvalidSchema = InvalidURL
        holder.InvalidHeader = InvalidHeader
    module.request, module.Session, module.session, module.Response = _requests, Session, Session, Response
    module.codes = python_types.SimpleNamespace(**{status.name.lower(): status.value for status in http.HTTPStatus})
    auth = python_types.ModuleType("requests.auth")
    auth.HTTPBasicAuth = HTTPBasicAuth
    module.exceptions, module.auth = errors, auth
    return {"requests": module, "requests.exceptions": errors, "requests.auth": auth}


def open_up():
    """Gives a program its requests."""
    import sys

    sys.modules.update(modules())
    urllib.request.urlopen = _urlopen
