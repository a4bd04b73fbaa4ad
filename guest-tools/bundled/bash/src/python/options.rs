//! The command line of `python3`.

use super::Origin;

/// Options without an effect here, such as unbuffered output: there is no site, no cache of modules, no terminal.
const IGNORED: &str = "bBdEiIOPqsSuvxR";

const USAGE: &str = "usage: python3 [option] ... [-c cmd | -m mod | file | -] [arg] ...";

/// The program that a command line starts.
#[derive(Debug, PartialEq)]
pub(crate) struct Start {
    pub origin: Origin,
    /// The program of `-c`, the module of `-m` or the path of a file.
    pub source: String,
    /// The arguments as the program sees them in `sys.argv`.
    pub arguments: Vec<String>,
}

/// Reads a command line.
///
/// # Errors
/// The lines for standard error, if an option is unknown or lacks its argument.
pub(crate) fn parse(arguments: &[String]) -> Result<Start, String> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-" => return Ok(start(Origin::Input, String::new(), "-", rest.as_slice())),
            "--version" => return Ok(version()),
            "--help" => return Ok(print(USAGE)),
            "--" => break,
            file if !file.starts_with('-') => {
                return Ok(start(Origin::File, file.to_owned(), file, rest.as_slice()));
            }
            _ => (),
        }
        let mut letters = argument.chars();
        letters.next();
        while let Some(letter) = letters.next() {
            let mut value = || {
                let attached = letters.as_str();
                let value = if attached.is_empty() { rest.next().cloned() } else { Some(attached.to_owned()) };
                value.ok_or_else(|| format!("Argument expected for the -{letter} option\n{USAGE}"))
            };
            match letter {
                'c' => {
                    let source = value()?;
                    return Ok(start(Origin::Command, source, "-c", rest.as_slice()));
                }
                'm' => {
                    let module = value()?;
                    return Ok(start(Origin::Module, module.clone(), &module, rest.as_slice()));
                }
                'W' | 'X' => {
                    value()?;
                    break;
                }
                'V' => return Ok(version()),
                'h' => return Ok(print(USAGE)),
                _ if IGNORED.contains(letter) => (),
                _ => return Err(format!("unknown option {argument}\n{USAGE}")),
            }
        }
    }
    Ok(match rest.next() {
        Some(file) => start(Origin::File, file.clone(), file, rest.as_slice()),
        None => start(Origin::Input, String::new(), "", &[]),
    })
}

fn start(origin: Origin, source: String, name: &str, rest: &[String]) -> Start {
    let arguments = std::iter::once(name.to_owned()).chain(rest.iter().cloned()).collect();
    Start { origin, source, arguments }
}

/// The engine knows its version.
fn version() -> Start {
    start(Origin::Command, "import sys\nprint('Python', sys.version.split()[0])".to_owned(), "-c", &[])
}

fn print(text: &str) -> Start {
    start(Origin::Command, format!("print({text:?})"), "-c", &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, origin: Origin, source: &str, arguments: &[&str]) {
        let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let parsed = parse(&words).unwrap();
        assert_eq!((parsed.origin, parsed.source.as_str()), (origin, source), "{line}");
        assert_eq!(parsed.arguments, arguments, "{line}");
    }

    #[test]
    fn a_command_line_starts_one_thing() {
        check("x.py -a 1", Origin::File, "x.py", &["x.py", "-a", "1"]);
        check("-u -B x.py -c 2", Origin::File, "x.py", &["x.py", "-c", "2"]);
        check("-c 1+1 a -b", Origin::Command, "1+1", &["-c", "a", "-b"]);
        check("-uc 1", Origin::Command, "1", &["-c"]);
        check("-c1", Origin::Command, "1", &["-c"]);
        check("-m json.tool x.json", Origin::Module, "json.tool", &["json.tool", "x.json"]);
        check("- a", Origin::Input, "", &["-", "a"]);
        check("", Origin::Input, "", &[""]);
        check("-u", Origin::Input, "", &[""]);
        check("-W ignore -Xutf8 -- -x.py", Origin::File, "-x.py", &["-x.py"]);
        assert!(parse(&["-V".to_owned()]).unwrap().source.contains("sys.version"));
    }

    #[test]
    fn an_unknown_option_is_named() {
        for (line, says) in [("-z", "unknown option -z"), ("-c", "-c option"), ("--fast x.py", "unknown option --fast")]
        {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let error = parse(&words).unwrap_err();
            assert!(error.starts_with(says) || error.contains(says), "{line}: {error}");
            assert!(error.ends_with(USAGE), "{error}");
        }
    }
}
