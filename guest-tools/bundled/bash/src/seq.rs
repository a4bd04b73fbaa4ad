//! `seq`: numbers in a row. The interpreter's own drops the lines after 100,000 and exits with 0.

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};

/// Lines of one call: their text is in memory.
const MAX_LINES: u64 = 500_000;

/// The command `seq` of the shell.
pub(crate) struct Seq;

#[async_trait]
impl Builtin for Seq {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(match Options::parse(context.args) {
            Ok(options) => options.run(),
            Err(message) => ExecResult::err(format!("seq: {message}\n"), 1),
        })
    }
}

#[derive(Debug, Default)]
struct Options {
    separator: Option<String>,
    format: Option<String>,
    equal_width: bool,
    numbers: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            let mut value = |attached: &str| match attached {
                "" => left.next().cloned().ok_or_else(|| format!("option '{argument}' requires an argument")),
                attached => Ok(attached.to_owned()),
            };
            let is_number = argument.parse::<f64>().is_ok();
            if let Some(text) = argument.strip_prefix("--separator=") {
                options.separator = Some(text.to_owned());
            } else if let Some(text) = argument.strip_prefix("--format=") {
                options.format = Some(text.to_owned());
            } else if argument == "-w" || argument == "--equal-width" {
                options.equal_width = true;
            } else if let Some(text) = argument.strip_prefix("-s") {
                options.separator = Some(value(text)?);
            } else if let Some(text) = argument.strip_prefix("-f") {
                options.format = Some(value(text)?);
            } else if is_number {
                options.numbers.push(argument.clone());
            } else if argument.starts_with('-') {
                return Err(format!("unrecognized option '{argument}'"));
            } else {
                return Err(format!("invalid floating point argument: '{argument}'"));
            }
        }
        match options.numbers.len() {
            0 => Err("missing operand".to_owned()),
            1..=3 => Ok(options),
            _ => Err(format!("extra operand '{}'", options.numbers.get(3).map_or("", String::as_str))),
        }
    }

    fn run(&self) -> ExecResult {
        let one = "1".to_owned();
        let (first, step, last) = match self.numbers.as_slice() {
            [last] => (&one, &one, last),
            [first, last] => (first, &one, last),
            [first, step, last, ..] => (first, step, last),
            [] => return ExecResult::ok(String::new()),
        };
        let number = |text: &String| text.parse::<f64>().unwrap_or_default();
        let (from, by, to) = (number(first), number(step), number(last));
        if by == 0.0 {
            return ExecResult::err(format!("seq: invalid Zero increment value: '{step}'\n"), 1);
        }
        let digits = fraction(first).max(fraction(step));
        // A bound that a sum of steps only just misses is reached.
        let count = ((to - from) / by + 1e-9).floor() + 1.0;
        let lines = if count.is_nan() || count < 1.0 { 0 } else { (count as u64).min(MAX_LINES) };
        let format = match self.format.as_deref().map(Format::parse).transpose() {
            Ok(format) => format,
            Err(message) => return ExecResult::err(format!("seq: {message}\n"), 1),
        };
        let end = from + by * (count - 1.0);
        let width = if self.equal_width { plain(from, digits).len().max(plain(end, digits).len()) } else { 0 };
        let separator = self.separator.as_deref().unwrap_or("\n");
        let mut text = String::new();
        for line in 0..lines {
            if line > 0 {
                text.push_str(separator);
            }
            let value = from + by * line as f64;
            match &format {
                Some(format) => format.write(value, &mut text),
                None => text.push_str(&padded(&plain(value, digits), width, '0')),
            }
        }
        if lines > 0 {
            text.push('\n');
        }
        let mut result = ExecResult::ok(text);
        if count > MAX_LINES as f64 {
            result.stderr = format!("seq: more than {MAX_LINES} lines: the rest is left out\n").into();
            result.exit_code = 1;
        }
        result
    }
}

/// Digits behind the point, as they were written.
fn fraction(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, digits)| digits.len())
}

fn plain(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.trim_start_matches(['-', '0', '.']).is_empty() { text.trim_start_matches('-').to_owned() } else { text }
}

fn padded(text: &str, width: usize, with: char) -> String {
    let missing = width.saturating_sub(text.len());
    match text.strip_prefix('-') {
        Some(digits) if with == '0' => format!("-{}{digits}", "0".repeat(missing)),
        _ => format!("{}{text}", with.to_string().repeat(missing)),
    }
}

/// `%g`, `%f` and `%e` are the forms of `seq`; here `%g` and `%f`, with a width.
struct Format {
    before: String,
    after: String,
    zeros: bool,
    left: bool,
    width: usize,
    digits: Option<usize>,
    form: char,
}

impl Format {
    fn parse(text: &str) -> Result<Self, String> {
        let unknown = || format!("format '{text}' is not known here: write %g, %f, %03g or %.2f");
        let at = text.replace("%%", "\0\0").find('%').ok_or_else(|| format!("format '{text}' has no % directive"))?;
        let (before, rest) = text.split_at(at);
        let rest = rest.strip_prefix('%').ok_or_else(unknown)?;
        let end = rest.find(['g', 'f']).ok_or_else(unknown)?;
        let (settings, rest) = rest.split_at(end);
        let (form, after) = (rest.chars().next().ok_or_else(unknown)?, rest.get(1..).unwrap_or_default());
        let flags: String = settings.chars().take_while(|flag| "-0".contains(*flag)).collect();
        let (width, digits) = match settings.get(flags.len()..).unwrap_or_default().split_once('.') {
            Some((width, digits)) => (width, Some(digits.parse().map_err(|_| unknown())?)),
            None => (settings.get(flags.len()..).unwrap_or_default(), None),
        };
        let width: usize = if width.is_empty() { 0 } else { width.parse().map_err(|_| unknown())? };
        if after.replace("%%", "").contains('%') || width > 200 || digits.is_some_and(|digits| digits > 200) {
            return Err(unknown());
        }
        let text = |text: &str| text.replace("%%", "%");
        Ok(Self {
            before: text(before),
            after: text(after),
            zeros: flags.contains('0'),
            left: flags.contains('-'),
            width,
            digits,
            form,
        })
    }

    fn write(&self, value: f64, text: &mut String) {
        let number = match self.form {
            'f' => format!("{value:.digits$}", digits = self.digits.unwrap_or(6)),
            _ => general(value, self.digits.unwrap_or(6)),
        };
        let with = if self.zeros && !self.left { '0' } else { ' ' };
        text.push_str(&self.before);
        if self.left {
            text.push_str(&number);
            text.push_str(&" ".repeat(self.width.saturating_sub(number.len())));
        } else {
            text.push_str(&padded(&number, self.width, with));
        }
        text.push_str(&self.after);
    }
}

/// `%g`: so many digits that count, no zeros behind them.
fn general(value: f64, digits: usize) -> String {
    let digits = digits.max(1);
    let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if exponent < -4 || exponent >= digits as i32 {
        let text = format!("{value:.places$e}", places = digits - 1);
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa =
            if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        let power: i32 = power.parse().unwrap_or_default();
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", power.abs());
    }
    let places = usize::try_from(digits as i32 - 1 - exponent).unwrap_or_default();
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
