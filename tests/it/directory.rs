//! Runs on a directory of the owner (SPEC LAND-1 to LAND-4): an obedient model, real tools, the real command line. The
//! directory stays byte for byte as it was, against all that a run does, until its owner lands the changes; each horror has its twin
//! that lands.

mod adverse;
mod commits;
mod horrors;
mod landing;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;
use tests::obedient::{NEXT, obey, task};

/// A directory, and a home whose model runs each script of its task in the shell, one a step.
pub(crate) struct Desk {
    pub(crate) motor: Motor,
    pub(crate) directory: PathBuf,
    /// The requests that the model was sent.
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
    pub(crate) model: ModelServer,
}

/// Paths with their entries.
pub(crate) type Listing = BTreeMap<String, String>;

impl Desk {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let decide = move |body: &Value| {
            seen.lock().unwrap().push(body.clone());
            obey(body)
        };
        let model = block_on(ModelServer::deciding(Box::new(decide)));
        let motor = Motor::with_model(&model).unattended();
        let directory = motor.directory().join("project");
        fs::create_dir(&directory).unwrap();
        let desk = Self { motor, directory, asked, model };
        files.iter().for_each(|(path, text)| desk.put(path, text));
        desk
    }

    /// Writes a file of the owner.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.directory.join(path)).unwrap()
    }

    /// Runs the scripts on the directory, and returns the run's id.
    pub(crate) fn run(&self, scripts: &[&str]) -> String {
        self.run_with(scripts, &[])
    }

    pub(crate) fn run_with(&self, scripts: &[&str], extra: &[&str]) -> String {
        let on = self.directory.to_str().unwrap();
        let task = task(scripts);
        let act = ["act", "--on", on, &task];
        let ended = self.motor.run(&[&act[..], extra, &["--json"]].concat()).succeeded();
        let value: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
        value["runId"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
    }

    /// The result of a call of the run.
    pub(crate) fn output(&self, run: &str, step: usize) -> String {
        let trace = self.motor.json(&["task", "status", run]);
        trace["steps"][step]["toolCalls"][0]["result"]["output"].as_str().unwrap().to_owned()
    }

    /// The changes of a run: paths with the kind of each.
    pub(crate) fn changes(&self, run: &str) -> BTreeMap<String, String> {
        let changes = self.motor.json(&["diff", run]);
        let files = changes["files"].as_array().unwrap();
        files.iter().map(|file| (text(&file["path"]), text(&file["change"]))).collect()
    }

    pub(crate) fn now(&self) -> Listing {
        listing(&self.directory)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Everything below a directory: mode and text of a file, the target of a link, `/` for a directory.
pub(crate) fn listing(root: &Path) -> Listing {
    fn walk(root: &Path, at: &Path, found: &mut Listing) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else if metadata.is_dir() {
                found.insert(name, "/".to_owned());
                walk(root, &path, found);
            } else {
                let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                found.insert(name, format!("{:o} {content}", metadata.permissions().mode() & 0o777));
            }
        }
    }
    let mut found = Listing::new();
    walk(root, root, &mut found);
    found
}
