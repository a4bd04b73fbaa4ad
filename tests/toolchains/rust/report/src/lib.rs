//! Half a tool: it imports `words`, which a composition provides.

wit_bindgen::generate!({ world: "reporting", path: "../../wit" });

struct Report;

impl exports::toolchains::text::report::Guest for Report {
    fn summary(text: String) -> String {
        match toolchains::text::words::count(&text).as_deref() {
            Ok([(word, count), ..]) => format!("`{word}` occurs {count} times"),
            Ok([]) => "no words".to_owned(),
            Err(error) => error.clone(),
        }
    }
}

export!(Report);
