//! The table of patterns: one row for each way to write something that an owner should read before anything else.
//!
//! A row is matched against a joined line, and against the same line without the quotes and escapes that a shell drops.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
// The patterns are of ASCII, and are matched as bytes so that the table stays small.
use regex::bytes;

use super::super::RiskKind;
use super::super::RiskKind::{
    DecodeAndRun, DisablesChecks, DownloadAndRun, LockedArchive, PasteSite, PipeToShell, RawAddress, RemoteShell,
};
use super::blobs::Encodings;
use super::saved::{self, SavedPatterns};

/// Where a row applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// It is searched in any text.
    Anywhere,
    /// In shell commands: a script, a marked code fence, or code within a line.
    Shell,
}
use Scope::{Anywhere, Shell};

/// Kind, scope and pattern. In patterns `{RUN}` is an interpreter that runs its standard input, `{SHELL}` an
/// interpreter, `{GET}` a program that downloads, `{DECODE}` one that decodes. Letter case is ignored.
const ROWS: [(RiskKind, Scope, &str); 61] = [
    // Decoded and run.
    (DecodeAndRun, Anywhere, r"{DECODE}.*\|\s*{RUN}"),
    (
        DecodeAndRun,
        Anywhere,
        r"(?:{SHELL}|\beval|\bsource|(?:^|[\s;])\.)\s.*(?:\$\(|<\(|(?:-c|eval)\s+['\x22]?`).*{DECODE}",
    ),
    (DecodeAndRun, Anywhere, r"{DECODE}.*>\s*(\S+).*(?:;|&&)\s*(?:chmod\s|{SHELL}\s|source\s|\./)"),
    (
        DecodeAndRun,
        Anywhere,
        r"\b(?:eval|exec|execSync|execfile|Function|system|popen|compile|spawn|subprocess\.\w+|os\.system)\s*\(.*(?:atob\s*\(|b(?:16|32|64|85)decode|codecs\.decode|bytes\.fromhex|unhexlify|zlib\.decompress|marshal\.loads|fromCharCode|FromBase64String|base64_decode|str_rot13|gzinflate|Buffer\.from\s*\([^)]*,\s*['\x22](?:base64|hex))",
    ),
    (DecodeAndRun, Anywhere, r"\b(?:powershell|pwsh)(?:\.exe)?\b.*\s-e(?:nc?|nco\w*|c)?\s+['\x22]?[A-Za-z0-9+/=]{16,}"),
    (DecodeAndRun, Anywhere, r"(?:\biex\b|invoke-expression|\[scriptblock\]::create).*frombase64string"),
    (DecodeAndRun, Anywhere, r"frombase64string.*\|\s*(?:iex\b|invoke-expression)"),
    (DecodeAndRun, Anywhere, r"\bprintf\s.*\\(?:x[0-9a-f]{2}|[0-7]{3}).*\|\s*{RUN}"),
    (DecodeAndRun, Anywhere, r"\beval\s.*\$'(?:\\x[0-9a-f]{2}){4,}"),
    // Downloaded and run.
    (DownloadAndRun, Anywhere, r"{GET}\s.*(?:https?:|\$|[\w-]+\.[a-z]{2,}).*\|\s*{RUN}"),
    (
        DownloadAndRun,
        Anywhere,
        r"(?:{SHELL}|\beval|\bsource|(?:^|[\s;`])\.)\s.*(?:\$\(|<\(|(?:-c|eval)\s+['\x22]?`)\s*{GET}\s",
    ),
    (DownloadAndRun, Anywhere, r"{GET}\s.*(?:;|&&)\s*(?:sudo\s+)?chmod\s+(?:\S*\+\w*x|[0-7]*[1357])"),
    (
        DownloadAndRun,
        Anywhere,
        r"{GET}\s.*(?:-o|-O|--output|--output-document|>)[ =]*(?:/tmp|/var/tmp|/dev/shm|~|\$|\./|\w)\S*.*(?:;|&&)\s*(?:sudo\s+)?(?:{SHELL}\s+[^-\s]|source\s|\./|/tmp/|/dev/shm/|/var/tmp/)",
    ),
    (
        DownloadAndRun,
        Anywhere,
        r"(?:\biex\b|invoke-expression|\[scriptblock\]::create)[\s(&{].*(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring|net\.webclient)",
    ),
    (
        DownloadAndRun,
        Anywhere,
        r"(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring).*\|\s*(?:iex\b|invoke-expression)",
    ),
    (
        DownloadAndRun,
        Anywhere,
        r"\b(?:exec|eval|Function|compile|os\.system)\s*\(.*(?:requests\.get|urlopen|urllib\.request|httpx\.get|await\s+fetch|fetch\s*\(|file_get_contents\s*\(\s*['\x22]https?)",
    ),
    (
        DownloadAndRun,
        Anywhere,
        r"\b(?:certutil(?:\.exe)?\s.*-urlcache|bitsadmin(?:\.exe)?\s.*/transfer|mshta(?:\.exe)?\s+['\x22]?(?:https?|javascript|vbscript):|regsvr32(?:\.exe)?\s.*/i:https?:|rundll32(?:\.exe)?\s.*javascript:)",
    ),
    (
        DownloadAndRun,
        Anywhere,
        r"\b(?:download|fetch|get)\b.*https?://\S+\.(?:exe|msi|scr|dmg|pkg|bat|ps1|vbs|apk)\b.*\b(?:run|execute|launch|open|install|double-click)\b",
    ),
    // A shell for another machine.
    (RemoteShell, Anywhere, r"/dev/(?:tcp|udp)/(?:[\w.-]+|\$\S+)/(?:\d+|\$)"),
    (RemoteShell, Anywhere, r"\b(?:nc|ncat|netcat)\b.*\s-(?:\w*e|-exec|c)\s*['\x22]?(?:/bin/|/usr/bin/)?{SHELL}"),
    (RemoteShell, Anywhere, r"\bmkfifo\b.*\|.*\b(?:nc|ncat|netcat|openssl|telnet)\b"),
    (RemoteShell, Anywhere, r"\bsocat\b.*\bexec:.*(?:sh|cmd)"),
    (RemoteShell, Anywhere, r"socket\.socket\(.*(?:dup2|pty\.spawn|subprocess)|\bdup2\s*\(\s*s\.fileno"),
    (RemoteShell, Anywhere, r"\b(?:bash|sh|zsh)\s+-i\s*(?:>&|&>|<&)"),
    // A shell that reads a pipe.
    (PipeToShell, Shell, r"\|\s*{RUNSHELL}"),
    (PipeToShell, Shell, r"\|\s*xargs\s.*\b(?:ba|z|da)?sh\s+-c"),
    (PipeToShell, Shell, r"\|\s*(?:source|\.)\s+/dev/stdin"),
    (PipeToShell, Shell, r"\b(?:ba|z|da|k)?sh\s+<<<"),
    // Archives that a scanner cannot open.
    (LockedArchive, Anywhere, r"\bunzip\b.*\s(?-i:-P)\s*\S+"),
    (LockedArchive, Anywhere, r"\b(?:7z[ar]?|unrar|rar)\s+[ex]\b.*\s-p\S+"),
    (
        LockedArchive,
        Anywhere,
        r"\.(?:zip|7z|rar|dmg|tar\.gz|tgz)\b.*\b(?:pass(?:word|code|phrase)?|pwd?|pass)\b\s*(?:is|:|=|\()\s*['\x22`*]*[\w-]+",
    ),
    (
        LockedArchive,
        Anywhere,
        r"\b(?:extract|unzip|unpack|decompress|open)\b.*\b(?:with|using)\b.*\b(?:pass(?:word|code|phrase)?|pass)\b\s*[:=]?\s*['\x22`*]+[\w-]+",
    ),
    (
        LockedArchive,
        Anywhere,
        r"\bpass(?:word|code|phrase)?\b\s*(?:is|:|=)?\s*['\x22`*]+[\w-]+['\x22`*]+.*\.(?:zip|7z|rar)\b",
    ),
    // Addresses without a name. Private and documentation addresses are left out by `is_public`.
    (
        RawAddress,
        Anywhere,
        r"\b(?:https?|ftp|wss?|tcp)://(?:[^\s/@]*@)?(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?:[:/?#'\x22`)\s]|$)",
    ),
    (
        RawAddress,
        Anywhere,
        r"\bhttps?://(?:[^\s/@]*@)?(?:0x[0-9a-f]{6,8}|0[0-7]{9,11}|[1-9]\d{7,9})(?:[:/?#'\x22`)\s]|$)",
    ),
    (RawAddress, Anywhere, r"\bhttps?://\[[0-9a-f]{1,4}:[0-9a-f:.]*[0-9a-f]\]"),
    (
        RawAddress,
        Shell,
        r"\b(?:curl|wget|nc|ncat|ssh|scp|telnet)\s(?:.*\s)?(?:\S*@)?(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?:[:/\s'\x22`]|$)",
    ),
    // Places where anybody can leave or collect text.
    (
        PasteSite,
        Anywhere,
        r"(?:^|[/@.\s'\x22`(<=])(?:pastebin\.com|glot\.io|webhook\.site|requestbin\.(?:com|net)|pipedream\.net|rentry\.(?:co|org)|paste\.(?:ee|rs)|hastebin\.com|toptal\.com/developers/hastebin|ghostbin\.\w+|dpaste\.(?:com|org)|0x0\.st|transfer\.sh|file\.io|anonfiles\.com|ix\.io|termbin\.com|bashupload\.com|catbox\.moe|gofile\.io|controlc\.com|privatebin\.net|paste\.c-net\.org|snippet\.host|justpaste\.it|temp\.sh|oshi\.at)\b",
    ),
    (
        PasteSite,
        Anywhere,
        r"(?:[/@.\s'\x22`(<=])(?:[\w-]+\.)*(?:ngrok(?:-free)?\.(?:io|app|dev)|trycloudflare\.com|serveo\.net|loca\.lt|lhr\.life|oast\.\w+|interact\.sh|interactsh\.com|burpcollaborator\.net|requestcatcher\.com|beeceptor\.com|m\.pipedream\.net|dnslog\.cn|canarytokens\.com|webhook\.cool)\b",
    ),
    (PasteSite, Anywhere, r"https?://(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{6,}"),
    (PasteSite, Anywhere, r"https?://api\.telegram\.org/bot\d{6,}:"),
    (PasteSite, Anywhere, r"https?://gist\.githubusercontent\.com/\S+.*\|"),
    // Orders to switch a check off, or to hide from people.
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+)?(?:previous|prior|above|earlier|preceding|system)\s+(?:instructions?|prompts?|rules|guidelines|directions)",
    ),
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:do\s+not|don'?t|never|without)\s+(?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|notify(?:ing)?)\s+(?:the\s+)?(?:user|human|owner|operator)\s+(?:about|that\s+you|of)\b",
    ),
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:do\s+not|don'?t|never)\s+(?:tell|inform|alert|notify)\s+(?:the\s+)?(?:user|human|owner|operator)\s*(?:[.!]|$)",
    ),
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:disable|turn\s+off|deactivate|switch\s+off|stop|pause|bypass|exclude\s+.*\bfrom)\s+(?:the\s+|your\s+|any\s+|all\s+)?(?:\w+\s+)?(?:anti-?virus|gatekeeper|(?:windows\s+)?defender|smartscreen|firewall|edr|selinux|apparmor|sandbox(?:ing)?\s+(?:checks?|protections?|restrictions?)|security\s+(?:software|warnings?|checks?|prompts?)|safety\s+(?:checks?|filters?|guidelines))\b",
    ),
    (DisablesChecks, Anywhere, r"\bset-mppreference\s.*-(?:disable|exclusion)|\badd-mppreference\s.*-exclusion"),
    (
        DisablesChecks,
        Anywhere,
        r"\bspctl\s+--(?:master|global)-disable|\bcsrutil\s+disable|\bxattr\s+(?:-\w*[cd]\w*\s+)+.*(?:com\.apple\.quarantine|/tmp|\$|~|\.app)|\bsetenforce\s+0|\b(?:ufw|netsh\s+advfirewall.*)\s+(?:disable|off)\b|\bsystemctl\s+(?:stop|disable)\s+(?:--now\s+)?(?:auditd|apparmor|firewalld|ufw|falco|crowdstrike)",
    ),
    (
        DisablesChecks,
        Anywhere,
        r"(?:--dangerously-skip-permissions|--dangerously-bypass-approvals|--allow-dangerously-skip|bypasspermissions)\b",
    ),
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:powershell|pwsh)(?:\.exe)?\s.*-(?:ep|ex\w*)\s+bypass.*(?:https?:|-enc|-w\w*\s+hidden|downloadstring|%temp%|\$env:temp)",
    ),
    (
        DisablesChecks,
        Shell,
        r"\b(?:NODE_TLS_REJECT_UNAUTHORIZED=['\x22]?0|GIT_SSL_NO_VERIFY=['\x22]?(?:1|true)|PYTHONHTTPSVERIFY=['\x22]?0)",
    ),
    (
        DisablesChecks,
        Anywhere,
        r"\bgit\s.*\bhttp\.sslverify[=\s]+['\x22]?(?:false|0)\b|\bstrict-ssl[=\s]+['\x22]?false\b",
    ),
    (DisablesChecks, Anywhere, r"\bpip[0-9.]*\s.*--trusted-host\b"),
    (DisablesChecks, Anywhere, r"[(,]\s*(?-i:verify\s*=\s*False)\b"),
    (DisablesChecks, Shell, r"\b(?:curl\s(?:.*\s)?(?:-\w*k\w*|--insecure)\s.*https?:|wget\s.*--no-check-certificate)"),
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:without\s+(?:asking|confirming|confirmation\s+from|approval\s+from|consent\s+of|permission\s+from)\s+(?:the\s+|your\s+|for\s+)?(?:user|owner|human|approval|permission|confirmation|consent))\b.*\b(?:run|execute|send|upload|delete|install|transfer|post|curl|sudo)\b",
    ),
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:run|execute|send|upload|delete|install|transfer|post)\b.*\bwithout\s+(?:asking|telling|informing|notifying)\s+(?:the\s+)?(?:user|owner|human)\b",
    ),
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:hide|conceal)\s+(?:this|it|these|the\s+\w+)\s+from\s+(?:the\s+)?(?:user|owner|human|operator)\b",
    ),
    (DisablesChecks, Anywhere, r"\b(?:click|choose|select|press|answer)\b.*['\x22`*]*(?:allow|open|run)\s+anyway"),
    (DisablesChecks, Anywhere, r"\b(?:unset\s+HISTFILE|HISTFILE=/dev/null|history\s+-c\b|HISTSIZE=0)"),
    (
        DisablesChecks,
        Anywhere,
        r"\b(?:approve|accept|allow|grant)\s+(?:all|any|every)\s+(?:permission|security|approval|confirmation)\s*(?:prompts?|dialogs?|requests?|warnings?)",
    ),
];

/// Programs that run other text. With a prefix such as `sudo` and a path before them, or a variable that names one.
const SHELLS: &str = r"(?:(?:sudo|doas|env|nohup|exec|command|time|nice|busybox|setsid|tee\s+\S+\s*\|)\s+(?:-\S+\s+)*|\w+=\S*\s+)*(?:[\w./~-]*/)?(?:\b(?:ba|z|da|k|a|c|tc|fi)?sh|\b(?:powershell|pwsh|cmd)(?:\.exe)?|\$\{?SHELL\}?|\$0)";
/// Commands of other interpreters.
const INTERPRETERS: &str = r"(?:(?:sudo|doas|env|nohup|exec)\s+(?:-\S+\s+)*)*(?:[\w./~-]*/)?\b(?:python[0-9.]*|perl|ruby|node|nodejs|php|deno|bun|lua|osascript)";
/// The end of a program that was given neither a file nor `-c`: it runs its standard input.
const STDIN: &str = r"(?:\s+-(?:\w*s\b.*|-?[a-bd-z]*\b|))*\s*(?:$|[;&|)<>'\x22`#\]])";
const DOWNLOADERS: &str = r"\b(?:curl|wget|wget2|fetch|aria2c|axel|lwp-download|http|httpie|iwr|irm|invoke-webrequest|invoke-restmethod)(?:\.exe)?";
const DECODERS: &str = r"(?:\bbase(?:16|32|64)\s+(?:\S+\s+)*?(?:-\w*d\w*\b|--d(?:ecode)?\b)|\bopenssl\s+(?:enc|base64)\b.*\s-d\b|\bxxd\s+(?:-\w+\s+)*-(?:r|rp|pr)\b|\b(?:uudecode|basenc\s.*(?:-d|--decode)|gunzip|zcat|xzcat|bzcat|gpg\s.*-d)\b|\brev(?:\s|$)|\btr\s+\S+\s+\S+)";

/// The pattern of a row, with its names written out.
fn written_out(pattern: &str) -> String {
    let shell = format!("(?:{SHELLS}|{INTERPRETERS})\\b");
    // `$SHELL}` and `.exe` end a word too, so the boundary is only after letters.
    let run = format!("(?:{SHELLS}|{INTERPRETERS}){STDIN}");
    let pattern = pattern
        .replace("{RUNSHELL}", &format!("{SHELLS}{STDIN}"))
        .replace("{RUN}", &run)
        .replace("{SHELL}", &shell)
        .replace("{GET}", DOWNLOADERS)
        .replace("{DECODE}", DECODERS);
    format!("(?i:{pattern})")
}

/// Every pattern of this module's table, and those of encoded texts.
pub(super) struct Patterns {
    set: bytes::RegexSet,
    each: Vec<bytes::Regex>,
    /// Words that begin a command worth reading, and addresses, in a text that was decoded.
    command: Regex,
    /// Texts that decode to others.
    pub(super) encodings: Encodings,
    /// Downloads, and files that are run.
    pub(super) saved: SavedPatterns,
}

const COMMAND: &str = r"(?i)https?://|\b(?:curl|wget|bash|sh|zsh|powershell|python3?|node|eval|exec|sudo|chmod|nc|rm -|import os|require\(|invoke-|iex|iwr|ssh|scp)\b[ ('\x22]|/bin/|/etc/|\.ssh/";
/// Maximum bytes of a compiled pattern, and of the table.
const MAX_COMPILED: usize = 64 << 20;

static PATTERNS: LazyLock<Result<Patterns, regex::Error>> =
    LazyLock::new(|| Patterns::of(ROWS.iter().map(|row| row.2)));

impl Patterns {
    /// The patterns, compiled once.
    pub(super) fn compiled() -> Result<&'static Self, regex::Error> {
        PATTERNS.as_ref().map_err(Clone::clone)
    }

    /// Compiles a table: all of it or nothing, since a missing row would look like a harmless text.
    fn of<'a>(rows: impl Iterator<Item = &'a str>) -> Result<Self, regex::Error> {
        let written: Vec<String> = rows.map(written_out).collect();
        let one = |row: &String| bytes::RegexBuilder::new(row).size_limit(MAX_COMPILED).unicode(false).build();
        let mut set = bytes::RegexSetBuilder::new(&written);
        Ok(Self {
            set: set.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).unicode(false).build()?,
            each: written.iter().map(one).collect::<Result<_, _>>()?,
            command: Regex::new(COMMAND)?,
            encodings: Encodings::compiled()?,
            saved: SavedPatterns { download: one(&written_out(saved::DOWNLOAD))?, run: one(&written_out(saved::RUN))? },
        })
    }

    /// Findings in a line: kind and byte offset, each kind once.
    pub(super) fn find(&self, line: &str, in_shell: bool) -> Vec<(RiskKind, usize)> {
        let mut found: Vec<(RiskKind, usize)> = Vec::new();
        let unquoted = unquoted(line);
        for text in [Some(line), (unquoted != line).then_some(&*unquoted)].into_iter().flatten() {
            for index in self.set.matches(text.as_bytes()) {
                let (Some((kind, scope, _)), Some(row)) = (ROWS.get(index), self.each.get(index)) else { continue };
                let known = found.iter().any(|(known, _)| known == kind);
                let applies = *scope == Anywhere || in_shell || text.contains('`');
                if !known
                    && applies
                    && let Some(at) = place(row, *kind, text)
                {
                    found.push((*kind, at.min(line.len())));
                }
            }
        }
        // A download that is run is one finding, not two.
        let runs = found.iter().any(|(kind, _)| matches!(kind, DecodeAndRun | DownloadAndRun | RemoteShell));
        found.retain(|(kind, _)| *kind != PipeToShell || !runs);
        found
    }

    /// Whether a decoded text has a command or an address in it.
    pub(super) fn has_command(&self, text: &str) -> bool {
        self.command.is_match(text)
    }
}

fn place(row: &bytes::Regex, kind: RiskKind, text: &str) -> Option<usize> {
    row.captures_iter(text.as_bytes()).find_map(|captures| {
        let address = captures.get(1).filter(|_| kind == RawAddress);
        let counts = address.is_none_or(|address| is_public(address.as_bytes()));
        counts.then(|| captures.get(0).map(|whole| whole.start())).flatten()
    })
}

/// Whether an IPv4 address is of the public internet, or that of a cloud's credentials.
fn is_public(address: &[u8]) -> bool {
    let Ok(Ok(address)) = std::str::from_utf8(address).map(str::parse::<std::net::Ipv4Addr>) else { return false };
    let [first, second, third, _] = address.octets();
    let quiet = address.is_private()
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_documentation()
        || address.is_broadcast()
        || address.is_multicast()
        || (first == 100 && (64..128).contains(&second));
    let resolver = matches!((first, second, third), (8, 8, 8 | 4) | (1, 1 | 0, 1 | 0) | (9, 9, 9))
        || address.octets() == [1, 2, 3, 4];
    !quiet && !resolver
}

/// The line as a shell reads its words: without empty quotes, escapes of letters, and `${IFS}` for a space.
fn unquoted(line: &str) -> Cow<'_, str> {
    if !line.contains(['\'', '"', '\\', '$']) {
        return Cow::Borrowed(line);
    }
    let line = line.replace("''", "").replace("\"\"", "").replace("${IFS}", " ").replace("$IFS", " ").replace("$@", "");
    let mut text = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let escapes = character == '\\' && characters.peek().is_some_and(char::is_ascii_alphabetic);
        if !escapes {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (_, _, pattern) in ROWS {
            let one = Patterns::of([pattern].into_iter());
            assert!(one.is_ok(), "{pattern}: {:?}", one.err());
        }
        assert_eq!(Patterns::compiled().map(|patterns| patterns.each.len()), Ok(ROWS.len()));
    }

    #[test]
    fn a_table_with_one_invalid_pattern_is_an_error() {
        assert!(Patterns::of([r"curl", r"bash"].into_iter()).is_ok());
        assert!(Patterns::of([r"curl", r"("].into_iter()).is_err());
    }

    #[test]
    fn addresses_of_examples_and_of_home_networks_are_quiet() {
        for quiet in
            ["127.0.0.1", "10.1.2.3", "192.168.1.5", "172.20.0.1", "192.0.2.7", "0.0.0.0", "8.8.8.8", "999.1.1.1"]
        {
            assert!(!is_public(quiet.as_bytes()), "{quiet}");
        }
        for public in ["91.92.242.30", "169.254.169.254", "45.33.32.156"] {
            assert!(is_public(public.as_bytes()), "{public}");
        }
    }
}
