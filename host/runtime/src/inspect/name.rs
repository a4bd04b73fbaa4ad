//! Tool names derived from function names: `[a-z][a-z0-9_-]*`, at most 64 bytes, deterministic.

use std::collections::BTreeMap;

/// Whether `name` is a valid tool name.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-')
}

/// The tool names of exported functions, in order: the function's own name; if that is not unique, prefixed with its
/// interface, then with its package too. `None` if even that is taken or is not a valid tool name.
///
/// A function's own name has no `_`, so the longer forms never meet the shorter ones.
pub(crate) fn tool_names(functions: &[(&str, &str)]) -> Vec<Option<String>> {
    let mut names: Vec<String> = functions.iter().map(|(_, function)| function.to_ascii_lowercase()).collect();
    for prefix in [interface_of, package_of] {
        let counts = count(&names);
        for (name, (export, function)) in names.iter_mut().zip(functions) {
            if !export.is_empty() && counts.get(name).is_some_and(|count| *count > 1) {
                *name = prefix(export, &function.to_ascii_lowercase());
            }
        }
    }
    let counts = count(&names);
    names.into_iter().map(|name| (counts.get(&name) == Some(&1) && is_tool_name(&name)).then_some(name)).collect()
}

fn count(names: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.clone()).or_insert(0) += 1;
    }
    counts
}

/// `shapes:flat/area@1.0.0` and `scale`: `area_scale`.
fn interface_of(export: &str, function: &str) -> String {
    let (_, interface) = parts(export);
    format!("{}_{function}", interface.to_ascii_lowercase())
}

/// `shapes:flat/area@1.0.0` and `scale`: `flat_area_scale`.
fn package_of(export: &str, function: &str) -> String {
    let (package, interface) = parts(export);
    format!("{}_{}_{function}", package.to_ascii_lowercase(), interface.to_ascii_lowercase())
}

/// Package and interface of an export, without namespace and version.
pub(super) fn parts(export: &str) -> (&str, &str) {
    let name = export.split_once('@').map_or(export, |(name, _)| name);
    let (package, interface) = name.rsplit_once('/').unwrap_or(("", name));
    (package.rsplit_once(':').map_or(package, |(_, package)| package), interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_short_as_they_can_be() {
        let check = |functions: &[(&str, &str)], expected: &[Option<&str>]| {
            let names = tool_names(functions);
            assert_eq!(names.iter().map(Option::as_deref).collect::<Vec<_>>(), expected, "{functions:?}");
        };
        check(&[("", "scale"), ("a:b/c@1.0.0", "move-by")], &[Some("scale"), Some("move-by")]);
        check(&[("", "to-URL")], &[Some("to-url")]);
        check(
            &[("", "scale"), ("a:b/area@1.0.0", "scale"), ("lines", "scale")],
            &[Some("scale"), Some("area_scale"), Some("lines_scale")],
        );
        check(
            &[("a:flat/area@1.0.0", "scale"), ("a:solid/area@1.0.0", "scale")],
            &[Some("flat_area_scale"), Some("solid_area_scale")],
        );
        check(&[("a:b/c@1.0.0", "x"), ("a:b/c@2.0.0", "x"), ("a:b/c@2.0.0", "y")], &[None, None, Some("y")]);
        check(&[("", &"long-".repeat(20))], &[None]);
        check(&[("", "[method]thing.get")], &[None]);
    }

    #[test]
    fn tool_names_have_one_syntax() {
        for name in ["a", "read_file", "to-url2"] {
            assert!(is_tool_name(name), "{name}");
        }
        for name in ["", "A", "2a", "-a", "a b", "a\u{202e}b", "a.b"] {
            assert!(!is_tool_name(name), "{name}");
        }
    }
}
