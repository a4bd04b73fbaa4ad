//! curl's command line.

use super::Fault;

/// Redirects that are followed without `--max-redirs`.
const REDIRECTS: usize = 20;

/// The requests and options of a command line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Options {
    pub targets: Vec<Target>,
    pub method: Option<String>,
    pub headers: Vec<String>,
    pub data: Vec<Data>,
    pub json: bool,
    pub form: Vec<Field>,
    pub upload: Option<String>,
    pub query: Vec<Data>,
    pub get: bool,
    pub head: bool,
    pub include: bool,
    pub fail: bool,
    pub fail_with_body: bool,
    pub silent: bool,
    pub show_error: bool,
    pub verbose: bool,
    pub create_dirs: bool,
    pub redirects: Option<usize>,
    pub user: Option<String>,
    pub bearer: Option<String>,
    pub user_agent: Option<String>,
    pub referer: Option<String>,
    pub cookie: Option<String>,
    pub range: Option<String>,
    pub timeout_ms: Option<u64>,
    pub write_out: Option<String>,
    pub dump_header: Option<String>,
}

/// One URL and where its response goes: standard output without a path.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub url: String,
    pub output: Option<String>,
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    /// `-d`: `@file` is read, without its line ends.
    Text(String),
    /// `--data-raw`: as it is.
    Raw(String),
    /// `--data-binary`, `--json`: `@file` is read as it is.
    Binary(String),
    /// `--data-urlencode`: percent-encoded for a form.
    Encoded(String),
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub text: String,
    /// `--form-string`: `@` and `<` mean themselves.
    pub literal: bool,
}

/// Short options and the long ones they stand for.
const SHORT: [(char, &str); 31] = [
    ('s', "silent"),
    ('S', "show-error"),
    ('f', "fail"),
    ('L', "location"),
    ('i', "include"),
    ('I', "head"),
    ('G', "get"),
    ('O', "remote-name"),
    ('v', "verbose"),
    ('k', "insecure"),
    ('#', "progress-bar"),
    ('N', "no-buffer"),
    ('g', "globoff"),
    ('q', "disable"),
    ('4', "ipv4"),
    ('6', "ipv6"),
    ('X', "request"),
    ('H', "header"),
    ('d', "data"),
    ('F', "form"),
    ('T', "upload-file"),
    ('o', "output"),
    ('u', "user"),
    ('A', "user-agent"),
    ('e', "referer"),
    ('b', "cookie"),
    ('m', "max-time"),
    ('w', "write-out"),
    ('x', "proxy"),
    ('r', "range"),
    ('D', "dump-header"),
];

/// Options without a value that change nothing here.
const IGNORED: [&str; 14] = [
    "progress-bar",
    "no-progress-meter",
    "no-buffer",
    "globoff",
    "disable",
    "ipv4",
    "ipv6",
    "http1.0",
    "http1.1",
    "http2",
    "compressed",
    "tcp-nodelay",
    "no-keepalive",
    "path-as-is",
];

/// Options with a value that change nothing here: a repetition is the script's to make.
const IGNORED_WITH_VALUE: [&str; 5] = ["retry", "retry-delay", "retry-max-time", "keepalive-time", "speed-limit"];

/// Options that would go around the host's network gate or its keeping of secrets, and why they are not there.
const REFUSED: [(&str, &str); 18] = [
    ("insecure", "certificates are always checked"),
    ("proxy", "requests go through the host's network gate only"),
    ("preproxy", "requests go through the host's network gate only"),
    ("socks5", "requests go through the host's network gate only"),
    ("socks5-hostname", "requests go through the host's network gate only"),
    ("resolve", "names are resolved by the host"),
    ("connect-to", "names are resolved by the host"),
    ("doh-url", "names are resolved by the host"),
    ("unix-socket", "requests go through the host's network gate only"),
    ("abstract-unix-socket", "requests go through the host's network gate only"),
    ("interface", "requests go through the host's network gate only"),
    ("cacert", "certificates are checked by the host"),
    ("cert", "there are no client certificates"),
    ("key", "there are no client certificates"),
    ("location-trusted", "credentials stay with the origin they were meant for"),
    ("netrc", "write `-H 'Authorization: Bearer <credential:NAME>'`"),
    ("config", "write the options on the command line"),
    ("cookie-jar", "cookies are not kept"),
];

impl Options {
    /// Reads a command line without the command.
    pub(super) fn parse(arguments: &[String]) -> Result<Self, Fault> {
        let mut options = Self::default();
        let mut parser = Parser::default();
        let mut rest = arguments.iter();
        let mut only_urls = false;
        while let Some(argument) = rest.next() {
            if only_urls || argument == "-" || !argument.starts_with('-') {
                parser.urls.push(argument.clone());
            } else if argument == "--" {
                only_urls = true;
            } else if let Some(long) = argument.strip_prefix("--") {
                let mut value = || rest.next().cloned().ok_or_else(|| needs_value(argument));
                parser.option(&mut options, long, argument, &mut value)?;
            } else {
                let mut cluster = argument.chars().skip(1);
                while let Some(short) = cluster.next() {
                    let shown = format!("-{short}");
                    let Some((_, long)) = SHORT.iter().find(|(known, _)| *known == short) else {
                        return Err(unknown(&shown));
                    };
                    let attached: String = cluster.clone().collect();
                    let mut taken = false;
                    let mut value = || {
                        taken = true;
                        if attached.is_empty() {
                            rest.next().cloned().ok_or_else(|| needs_value(&shown))
                        } else {
                            Ok(attached.clone())
                        }
                    };
                    parser.option(&mut options, long, &shown, &mut value)?;
                    if taken {
                        break;
                    }
                }
            }
        }
        parser.finish(options)
    }
}

fn needs_value(option: &str) -> Fault {
    Fault::usage(format!("option {option}: requires parameter"))
}

fn unknown(option: &str) -> Fault {
    Fault::usage(format!("option {option}: is unknown"))
}

#[derive(Default)]
struct Parser {
    urls: Vec<String>,
    outputs: Vec<Output>,
    output_dir: Option<String>,
    location: bool,
    most_redirects: Option<usize>,
}

enum Output {
    Path(String),
    RemoteName,
}

type Value<'a> = &'a mut dyn FnMut() -> Result<String, Fault>;

impl Parser {
    fn option(&mut self, options: &mut Options, long: &str, shown: &str, value: Value<'_>) -> Result<(), Fault> {
        if let Some((_, reason)) = REFUSED.iter().find(|(name, _)| *name == long) {
            return Err(Fault::usage(format!("option {shown}: is not available here: {reason}")));
        }
        if IGNORED.contains(&long) {
            return Ok(());
        }
        if IGNORED_WITH_VALUE.contains(&long) {
            return value().map(drop);
        }
        match long {
            "silent" => options.silent = true,
            "show-error" => options.show_error = true,
            "fail" => options.fail = true,
            "fail-with-body" => options.fail_with_body = true,
            "location" => self.location = true,
            "include" | "show-headers" => options.include = true,
            "head" => options.head = true,
            "get" => options.get = true,
            "verbose" => options.verbose = true,
            "create-dirs" => options.create_dirs = true,
            "remote-name" => self.outputs.push(Output::RemoteName),
            "output" => self.outputs.push(Output::Path(value()?)),
            "output-dir" => self.output_dir = Some(value()?),
            "url" => self.urls.push(value()?),
            "request" => options.method = Some(value()?),
            "header" => options.headers.push(value()?),
            "data" | "data-ascii" => options.data.push(Data::Text(value()?)),
            "data-raw" => options.data.push(Data::Raw(value()?)),
            "data-binary" => options.data.push(Data::Binary(value()?)),
            "data-urlencode" => options.data.push(Data::Encoded(value()?)),
            "json" => {
                options.json = true;
                options.data.push(Data::Binary(value()?));
            }
            "url-query" => options.query.push(Data::Encoded(value()?)),
            "form" => options.form.push(Field { text: value()?, literal: false }),
            "form-string" => options.form.push(Field { text: value()?, literal: true }),
            "upload-file" => options.upload = Some(value()?),
            "user" => options.user = Some(value()?),
            "oauth2-bearer" => options.bearer = Some(value()?),
            "user-agent" => options.user_agent = Some(value()?),
            "referer" => options.referer = Some(value()?),
            "cookie" => options.cookie = Some(value()?),
            "range" => options.range = Some(value()?),
            "write-out" => options.write_out = Some(value()?),
            "dump-header" => options.dump_header = Some(value()?),
            // The gate knows one time for each phase of a request.
            "max-time" => options.timeout_ms = Some(milliseconds(shown, &value()?)?),
            "connect-timeout" => {
                let asked = milliseconds(shown, &value()?)?;
                options.timeout_ms.get_or_insert(asked);
            }
            "max-redirs" => {
                let text = value()?;
                let number: i64 = text.parse().map_err(|_| not_a_number(shown))?;
                self.most_redirects = Some(usize::try_from(number).unwrap_or(REDIRECTS));
            }
            _ => return Err(unknown(shown)),
        }
        Ok(())
    }

    fn finish(self, mut options: Options) -> Result<Options, Fault> {
        if self.urls.is_empty() {
            return Err(Fault::usage("no URL specified"));
        }
        let mut outputs = self.outputs.into_iter();
        for url in self.urls {
            let output = match outputs.next() {
                Some(Output::Path(path)) => Some(path),
                Some(Output::RemoteName) => Some(remote_name(&url)?),
                None => None,
            };
            let output = output.map(|path| match &self.output_dir {
                Some(directory) if path != "-" => format!("{directory}/{path}"),
                _ => path,
            });
            // As curl guesses it.
            let url = if url.contains("://") { url } else { format!("http://{url}") };
            options.targets.push(Target { url, output });
        }
        options.redirects = self.location.then(|| self.most_redirects.unwrap_or(REDIRECTS));
        Ok(options)
    }
}

fn remote_name(url: &str) -> Result<String, Fault> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()).unwrap_or_default();
    if matches!(name, "" | "." | "..") {
        return Err(Fault::new(super::exit::WRITE, "Remote file name has no length: name a file with `-o`"));
    }
    Ok(name.to_owned())
}

fn not_a_number(option: &str) -> Fault {
    Fault::usage(format!("option {option}: expected a proper numerical parameter"))
}

fn milliseconds(option: &str, seconds: &str) -> Result<u64, Fault> {
    let seconds: f64 = seconds.parse().map_err(|_| not_a_number(option))?;
    if !(0.0..=1e9).contains(&seconds) {
        return Err(not_a_number(option));
    }
    // A cast from a float saturates, and the range was checked.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1e12, whole")]
    Ok((seconds * 1_000.0).ceil() as u64)
}
