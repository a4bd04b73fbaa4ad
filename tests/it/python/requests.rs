//! The part of `requests` and `urllib.request` that `docs/python.md` promises: for each program its value, and the last request as it
//! arrived.

use runtime::CodeAccess;
use serde_json::{Value, json};
use tests::block_on;
use tests::network::{Received, Reply, Site};

use super::connected::value;
use super::engine;
use crate::fetch::{SECRET, way_to};

/// A request as the table has it: method and target, the headers of the program, and the body.
fn shown(request: &Received) -> String {
    let is_own = |name: &str| name.starts_with("x-") || ["authorization", "content-type", "cookie"].contains(&name);
    let headers = request.headers.iter().filter(|(name, _)| is_own(name));
    let mut headers: Vec<String> = headers.map(|(name, value)| format!(" {name}={value}")).collect();
    headers.sort();
    format!("{} {}{} {}", request.method, request.target, headers.concat(), request.text()).trim_end().to_owned()
}

fn site() -> Site {
    let typed = |kind: &str, body: &[u8]| {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Reply::Whole { status: 200, headers, body: body.to_vec() }
    };
    let with_cookies = |status: u16, more: &[(&str, &str)]| {
        let cookies = [("set-cookie", "sid=abc; Path=/; HttpOnly"), ("set-cookie", "lang=de")];
        let headers = cookies.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Reply::Whole { status, headers: headers.collect(), body: Vec::new() }
    };
    block_on(Site::start())
        .with("/json", Reply::json(&json!({ "a": [1] })))
        .with("/latin", typed("text/plain; charset=iso-8859-1", b"gr\xfcn\nrot"))
        .with("/there", Reply::redirect("/json"))
        .with("/twice", Reply::redirect("/there"))
        .with("/see-other", Reply::redirect_as(303, "/json"))
        .with("/same", Reply::redirect_as(307, "/json"))
        .with("/loop", Reply::redirect("/loop"))
        .with("/login", with_cookies(302, &[("location", "/json")]))
        .with("/logout", typed("text/plain", b"bye"))
        .with("/close", Reply::Close)
        .with("/silent", Reply::Silence)
        .with("/large", Reply::Sized { said: 9 << 20, sent: 9 << 20 })
}

/// The programs begin with `site` and `requests`. In the requests `SECRET` stands for the value of the credential.
const REQUESTS: &str = r#"
r = requests.get(site + '/json')
[r.status_code, r.ok, bool(r), r.reason, r.json(), r.text, r.content.decode(), r.headers['Content-Type'], r.headers.get('content-type'), 'x' in r.headers, r.url == site + '/json', r.history]
-> [200, true, true, "OK", {"a": [1]}, "{\"a\":[1]}", "{\"a\":[1]}", "application/json", "application/json", false, true, []]
-> GET /json
---
requests.get(site + '/json', params={'q': 'a b&c', 'n': [1, 2], 'none': None}).url.removeprefix(site)
-> "/json?q=a+b%26c&n=1&n=2"
-> GET /json?q=a+b%26c&n=1&n=2
---
requests.get(site + '/json?a=ü c', {'b': 1}).status_code
-> 200
-> GET /json?a=%C3%BC%20c&b=1
---
requests.get(site + '/json', params=[('a', 1), ('a', 2)]).status_code
-> 200
-> GET /json?a=1&a=2
---
requests.post(site + '/json', json={'a': [1, None]}).json()
-> {"a": [1]}
-> POST /json content-type=application/json {"a": [1, null]}
---
requests.post(site + '/json', data={'a': 'ü', 'b': [1, 2]}).ok
-> true
-> POST /json content-type=application/x-www-form-urlencoded a=%C3%BC&b=1&b=2
---
requests.post(site + '/json', 'plain text').ok
-> true
-> POST /json plain text
---
import io
requests.put(site + '/json', data=io.BytesIO(b'from a file'), headers={'Content-Type': 'text/plain'}).ok
-> true
-> PUT /json content-type=text/plain from a file
---
[getattr(requests, verb)(site + '/json').status_code for verb in ('get', 'post', 'put', 'patch', 'delete', 'options')] + [requests.request('delete', site + '/json').ok]
-> [200, 200, 200, 200, 200, 200, true]
-> DELETE /json
---
r = requests.head(site + '/there')
[r.status_code, r.content.decode(), r.headers['location']]
-> [302, "", "/json"]
-> HEAD /there
---
requests.get(site + '/json', headers={'X-A': 'b', 'X-None': None, 'Host': 'evil.example', 'Connection': 'close', 'Content-Length': '7'}).ok
-> true
-> GET /json x-a=b
---
requests.get(site + '/json', auth=('me', 'pw')).ok
-> true
-> GET /json authorization=Basic bWU6cHc=
---
from requests.auth import HTTPBasicAuth
requests.get(site + '/json', auth=HTTPBasicAuth('me', 'pw')).ok
-> true
-> GET /json authorization=Basic bWU6cHc=
---
requests.get(site + '/json', params={'k': '<credential:key>'}, headers={'Authorization': 'Bearer <credential:key>'}).ok
-> true
-> GET /json?k=SECRET authorization=Bearer SECRET
---
requests.post(site + '/json', data={'k': '<credential:key>'}).ok
-> true
-> POST /json content-type=application/x-www-form-urlencoded k=SECRET
---
requests.get(site + '/json', cookies={'a': '1', 'b': '2'}).ok
-> true
-> GET /json cookie=a=1; b=2
---
with requests.Session() as s:
    s.headers.update({'X-A': 'session', 'X-B': 'session'})
    s.params = {'p': 1}
    s.auth = ('me', 'pw')
    r = s.get(site + '/json', headers={'x-a': 'own'}, params={'q': 2})
r.ok
-> true
-> GET /json?p=1&q=2 authorization=Basic bWU6cHc= x-a=own x-b=session
---
s = requests.Session()
r = s.get(site + '/login')
s.cookies.set('own', '1')
[s.post(site + '/json', json=1).ok, s.cookies['sid'], s.cookies.get('lang'), r.history[0].cookies.get_dict()]
-> [true, "abc", "de", {"sid": "abc", "lang": "de"}]
-> POST /json content-type=application/json cookie=sid=abc; lang=de; own=1 1
---
r = requests.get(site + '/login')
[r.url.removeprefix(site), len(r.history)]
-> ["/json", 1]
-> GET /json cookie=sid=abc; lang=de
---
r = requests.get(site + '/twice', headers={'X-A': 'b'})
[r.url.removeprefix(site), [h.status_code for h in r.history], r.json()]
-> ["/json", [302, 302], {"a": [1]}]
-> GET /json x-a=b
---
r = requests.get(site + '/there', allow_redirects=False)
[r.status_code, r.headers['Location']]
-> [302, "/json"]
-> GET /there
---
requests.post(site + '/there', json=1).ok
-> true
-> GET /json
---
requests.put(site + '/see-other', json=1).ok
-> true
-> GET /json
---
requests.post(site + '/same', json=1).ok
-> true
-> POST /json content-type=application/json 1
---
r = requests.get(site + '/none')
try:
    r.raise_for_status()
except requests.exceptions.HTTPError as error:
    result = [bool(r), error.response.status_code, '404' in str(error), r.status_code == requests.codes.not_found]
result
-> [false, 404, true, true]
-> GET /none
---
import builtins
def caught(ask):
    try:
        ask()
    except requests.exceptions.RequestException as error:
        names = ('ConnectionError', 'Timeout', 'TooManyRedirects', 'InvalidURL', 'PermissionError', 'TimeoutError', 'ValueError')
        return [n for n in names if isinstance(error, getattr(requests.exceptions, n, None) or getattr(builtins, n))]
[caught(lambda: requests.get(site.replace('127.0.0.1', '127.0.0.9'))), caught(lambda: requests.get(site + '/close')), caught(lambda: requests.get(site + '/loop')),
 caught(lambda: requests.get('example')), caught(lambda: requests.get(site + '/silent', timeout=0.2)), caught(lambda: requests.get(site + '/large'))]
-> [["PermissionError"], ["ConnectionError"], ["TooManyRedirects"], ["InvalidURL", "ValueError"], ["Timeout", "TimeoutError"], []]
-> GET /large
---
def refused(method, url, **named):
    try:
        requests.request(method, url, **named)
    except requests.exceptions.RequestException as error:
        return [type(error).__name__, isinstance(error, ValueError), str(error)]
[refused('BAD METHOD', site), refused('', site), refused('GET', 'http://exa mple/a'), refused('GET', 'http://münchen.example/'),
 refused('GET', 'example'), refused('GET', 'ftp://example.com/'), refused('GET', 'http:///a'), refused('GET', 'http://a:b/'), refused('GET', 'http://a:0/'),
 refused('GET', site, headers={'X A': 'b'}), refused('GET', site, headers={'X-A': 'b\nc'}),
 requests.get(site + '/json', headers={'X-A': 'b c'}).ok, requests.request('purge', site + '/json').ok]
-> [["InvalidMethod", true, "Invalid method 'BAD METHOD'"], ["InvalidMethod", true, "Invalid method ''"], ["InvalidURL", true, "Invalid URL 'http://exa mple/a': 'exa mple' is not a host; outside ASCII a name has its `xn--` form"], ["InvalidURL", true, "Invalid URL 'http://münchen.example/': 'münchen.example' is not a host; outside ASCII a name has its `xn--` form"], ["InvalidURL", true, "Invalid URL 'example': No scheme supplied. Perhaps you meant https://example?"], ["InvalidURL", true, "Invalid URL 'ftp://example.com/': the scheme is 'ftp', and only http and https can be requested"], ["InvalidURL", true, "Invalid URL 'http:///a': No host supplied"], ["InvalidURL", true, "Invalid URL 'http://a:b/': Port could not be cast to integer value as 'b'"], ["InvalidURL", true, "Invalid URL 'http://a:0/': there is no port 0"], ["InvalidHeader", true, "Invalid header 'x a': its name or its value cannot be sent"], ["InvalidHeader", true, "Invalid header 'x-a': its name or its value cannot be sent"], true, true]
-> PURGE /json
---
import urllib.request
def refused(method, url):
    try:
        urllib.request.urlopen(urllib.request.Request(url, method=method))
    except ValueError as error:
        return str(error)
[refused('BAD METHOD', site), refused('GET', 'http://exa mple/a'), urllib.request.urlopen(site + '/json').status]
-> ["Invalid method 'BAD METHOD'", "Invalid URL 'http://exa mple/a': 'exa mple' is not a host; outside ASCII a name has its `xn--` form", 200]
-> GET /json
---
r = requests.get(site + '/latin')
[r.encoding, r.text, [line.decode('latin-1') for line in r.iter_lines()], list(r.iter_lines(decode_unicode=True)), [len(part) for part in r.iter_content(5)]]
-> ["iso-8859-1", "grün\nrot", ["grün", "rot"], ["grün", "rot"], [5, 3]]
-> GET /latin
---
try:
    requests.post(site + '/json', files={'a': b'b'})
except NotImplementedError as error:
    result = str(error)
[result, requests.get(site + '/json').ok]
-> ["the sandbox's `requests` sends no `files`: send their content as `data`", true]
-> GET /json
---
import urllib.request, urllib.parse, json
with urllib.request.urlopen(site + '/json?q=' + urllib.parse.quote('ü'), timeout=5) as r:
    result = [r.status, json.load(r), r.headers['Content-Type'], r.headers.get_content_type(), r.geturl().removeprefix(site)]
result
-> [200, {"a": [1]}, "application/json", "application/json", "/json?q=%C3%BC"]
-> GET /json?q=%C3%BC
---
import urllib.request
urllib.request.urlopen(site + '/json', data=b'a=1').status
-> 200
-> POST /json content-type=application/x-www-form-urlencoded a=1
---
import urllib.request
urllib.request.urlopen(urllib.request.Request(site + '/json', data=b'{}', headers={'Content-Type': 'application/json', 'X-A': 'b'}, method='PUT')).status
-> 200
-> PUT /json content-type=application/json x-a=b {}
---
import urllib.error, urllib.request
result = []
for path in ('/none', '/close'):
    try:
        urllib.request.urlopen(site + path)
    except urllib.error.HTTPError as error:
        result.append(error.code)
    except urllib.error.URLError as error:
        result.append(type(error.reason).__name__)
result
-> [404, "Disconnected"]
-> GET /close
"#;

#[test]
fn requests_arrive_as_the_program_means_them() {
    let Some(sandbox) = engine(true) else { return };
    let site = site();
    let begin = format!("import requests\nsite = {:?}\n", site.url("").trim_end_matches('/'));
    for row in REQUESTS.trim().split("\n---\n") {
        let mut parts = row.split("\n-> ");
        let (source, expected, request) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let given = CodeAccess { network: Some(way_to(&[&site])), ..CodeAccess::default() };
        let value = value(sandbox, &format!("{begin}{source}"), given);
        assert_eq!(value, serde_json::from_str::<Value>(expected).unwrap(), "{source}");
        assert_eq!(shown(&site.last_request()), request.replace("SECRET", SECRET), "{source}");
    }
}
