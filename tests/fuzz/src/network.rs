//! The texts that the network gate decides by: URLs, patterns of domains, shapes of requests, headers.

use ::network::{Nature, Pattern, Shape, Target, Unit, reads};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::text;

/// URLs: an accepted one reads itself.
pub(crate) fn target(bytes: &[u8]) {
    let Some(url) = text(bytes) else { return };
    let Ok(target) = Target::parse(url) else { return };
    let written = target.to_string();
    assert_eq!(Target::parse(&written).as_ref(), Ok(&target), "{written}");
    let uri: http::Uri = written.parse().expect("a target is a URI");
    assert_eq!(Target::from_uri(&uri).as_ref(), Ok(&target), "{written}");
}

/// Patterns of domains: an accepted one reads itself, and one that names a host covers itself and that host.
pub(crate) fn pattern(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(pattern) = text.parse::<Pattern>() else { return };
    let written = pattern.to_string();
    assert_eq!(written.parse::<Pattern>().as_ref(), Ok(&pattern), "{written}");
    assert_eq!(pattern.is_wider(&pattern), pattern.is_exact(), "{written}");
    if pattern.is_exact()
        && let Ok(target) = Target::parse(&format!("https://{written}/"))
    {
        assert!(pattern.covers(&target), "{written}");
    }
}

/// Shapes of requests: an accepted one reads itself and is within itself.
pub(crate) fn shape(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(shape) = text.parse::<Shape>() else { return };
    let written = shape.to_string();
    let again = written.parse::<Shape>();
    assert_eq!(again.as_ref(), Ok(&shape), "{written}");
    assert!(shape.is_within(&shape), "{written}");
}

/// A request: method, URL, a header on each line, an empty line, the body. A request that only reads is one by method and
/// headers too, and the class of a request covers it.
pub(crate) fn headers(bytes: &[u8]) {
    let Some((head, body)) = text(bytes).map(|text| text.split_once("\n\n").unwrap_or((text, ""))) else { return };
    let mut lines = head.lines();
    let (Some(method), Some(url)) = (lines.next(), lines.next()) else { return };
    let pairs: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let is_read = reads(method, pairs.iter().copied());
    let Ok(target) = Target::parse(url) else { return };
    let Ok(method) = Method::from_bytes(method.as_bytes()) else {
        assert!(!is_read);
        return;
    };
    let mut map = HeaderMap::new();
    for (name, value) in &pairs {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(*name), HeaderValue::try_from(*value)) else {
            assert!(!is_read);
            return;
        };
        map.append(name, value);
    }
    let unit = Unit::new(method, target, map, Bytes::copy_from_slice(body.as_bytes()));
    if unit.nature() != Nature::Write {
        assert!(is_read && body.is_empty());
    }
    for class in [unit.class(), unit.carrying_class()].into_iter().flatten() {
        assert!(class.covers(&unit), "{class}");
        assert_eq!(class.to_string().parse::<Shape>().as_ref(), Ok(&class), "{class}");
    }
    assert_eq!(unit.hash(), unit.clone().hash());
}
