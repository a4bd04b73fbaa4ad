//! The size of the program: the parts of its file that are loaded, so that symbols and line numbers make no difference, and the bundled
//! components in it. A bound that is passed with room to spare is lowered.

use std::fs;

use memchr::memmem;
use tests::binary::program_file;

/// Bytes of the file that are loaded, of the program as it is tested.
const MAX_LOADED_BYTES: u64 = 140_000_000;
/// Bytes of the bundled components and of their code.
const MAX_BUNDLED_BYTES: usize = 22_000_000;

/// The type of a segment that is loaded (ELF-64, `PT_LOAD`).
const LOADED: u32 = 1;
/// Where the header of an ELF-64 file has the position of its program headers, their size and their number.
const HEADERS: usize = 0x20;
const HEADER_SIZE: usize = 0x36;
const HEADER_COUNT: usize = 0x38;
/// Where a program header has the bytes of its segment in the file.
const FILE_SIZE: usize = 0x20;
/// Bytes at the beginning of a component by which it is looked for.
const BEGINNING: usize = 64;

fn number<const BYTES: usize>(file: &[u8], at: usize) -> [u8; BYTES] {
    file[at..at + BYTES].try_into().unwrap()
}

fn loaded_bytes(file: &[u8]) -> u64 {
    assert_eq!(&file[..5], b"\x7fELF\x02", "a program for 64 bits");
    let first = usize::try_from(u64::from_le_bytes(number(file, HEADERS))).unwrap();
    let size = usize::from(u16::from_le_bytes(number(file, HEADER_SIZE)));
    let count = usize::from(u16::from_le_bytes(number(file, HEADER_COUNT)));
    let headers = (0..count).map(|header| first + header * size);
    let loaded = headers.filter(|at| u32::from_le_bytes(number(file, *at)) == LOADED);
    loaded.map(|at| u64::from_le_bytes(number(file, at + FILE_SIZE))).sum()
}

#[test]
fn the_program_is_no_larger_than_it_was() {
    let bytes = loaded_bytes(&fs::read(program_file()).unwrap());
    println!("size: {} MB of the program are loaded", bytes / 1_000_000);
    assert!(bytes <= MAX_LOADED_BYTES, "{bytes} bytes");
}

#[test]
fn each_component_is_in_the_program_once() {
    let file = fs::read(program_file()).unwrap();
    let parts = || bundled::COMPONENTS.iter().chain(&bundled::CODE);
    assert!(bundled::components().count() > 0);
    for (name, bytes) in parts() {
        let begins = memmem::find_iter(&file, &bytes[..BEGINNING]);
        assert_eq!(begins.filter(|at| file[*at..].starts_with(bytes)).count(), 1, "{name}");
    }
    let bytes: usize = parts().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes <= MAX_BUNDLED_BYTES, "{bytes} bytes");
}
