//! Outside a component there is no workspace, as in one that the host gives no directory.

use super::{Entry, Mode};
use crate::connected::failure::Failure;

type Result<T> = std::result::Result<T, Failure>;

fn nothing<T>() -> Result<T> {
    Err(Failure::new("denied", "the program was given no files"))
}

pub fn read(_path: &str, _offset: u64, _length: u64) -> Result<Vec<u8>> {
    nothing()
}

pub fn write(_path: &str, _bytes: &[u8], _mode: Mode) -> Result<()> {
    nothing()
}

pub fn list(_path: &str, _most: usize) -> Result<Vec<Entry>> {
    nothing()
}

pub fn stat(_path: &str) -> Result<Entry> {
    nothing()
}

pub fn remove(_path: &str) -> Result<()> {
    nothing()
}

pub fn make(_path: &str) -> Result<()> {
    nothing()
}
