//! Traces as files: `logs/motor-runs/<id>.json` (SPEC OBS-1), for reading without the host. The store has the truth.

use std::io::Write as _;
use std::path::Path;

use motor::RunTrace;

/// Writes or replaces a run's trace file. A reader sees the old one or the new one, never half of one.
pub(crate) fn write(logs: &Path, trace: &RunTrace) -> std::io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".trace-").tempfile_in(logs)?;
    serde_json::to_writer_pretty(&mut file, trace)?;
    file.write_all(b"\n")?;
    file.persist(logs.join(format!("{}.json", trace.run_id)))?;
    Ok(())
}
