//! The limits of one call, so that a hostile repository ends with a message and not with the component.

/// Bytes of an object that is held in memory. 16 MiB: a delta needs its base, itself and the result at once, and a
/// component has 64 MiB.
pub(crate) const MAX_OBJECT_BYTES: u64 = 16 << 20;

/// Bytes of a file that is compared line by line; a larger one is treated as binary. 4 MiB: its lines take a multiple.
pub(crate) const MAX_TEXT_BYTES: u64 = 4 << 20;

/// Bytes that are decompressed in one call. 4 GiB: more than the time of a call suffices for.
pub(crate) const MAX_INFLATED_BYTES: u64 = 4 << 30;

/// Links of a chain of deltas. git itself writes at most 4,095.
pub(crate) const MAX_DELTA_DEPTH: usize = 4_096;

/// Bytes of decompressed objects that are kept for use as a delta's base.
pub(crate) const MAX_CACHED_BYTES: usize = 8 << 20;

/// Bytes of one block that is read from a pack or its index.
pub(crate) const BLOCK_BYTES: u64 = 64 << 10;

/// Blocks of one file that are kept.
pub(crate) const MAX_BLOCKS: usize = 24;

/// Packs of one repository.
pub(crate) const MAX_PACKS: usize = 2_000;

/// Object directories in addition to the repository's own (`objects/info/alternates`).
pub(crate) const MAX_ALTERNATES: usize = 8;

/// Directories above a file in a tree or a working tree.
pub(crate) const MAX_TREE_DEPTH: usize = 128;

/// Files of a tree, an index or a working tree.
pub(crate) const MAX_FILES: usize = 200_000;

/// Tags that a tag points through.
pub(crate) const MAX_TAG_DEPTH: usize = 16;

/// Symbolic references that a reference points through; git's own limit.
pub(crate) const MAX_SYMBOLIC_DEPTH: usize = 5;

/// References of one repository.
pub(crate) const MAX_REFERENCES: usize = 50_000;

/// Bytes of one reference's file.
pub(crate) const MAX_REFERENCE_BYTES: u64 = 4 << 10;

/// Bytes of `packed-refs`.
pub(crate) const MAX_PACKED_REFS_BYTES: u64 = 8 << 20;

/// Bytes of a reflog.
pub(crate) const MAX_REFLOG_BYTES: u64 = 8 << 20;

/// Bytes of the index.
pub(crate) const MAX_INDEX_BYTES: u64 = 24 << 20;

/// Bytes of `config`, of a file with patterns, of a mailmap.
pub(crate) const MAX_SMALL_FILE_BYTES: u64 = 1 << 20;

/// Patterns of all `.gitignore` and `.gitattributes` files that apply to one directory.
pub(crate) const MAX_PATTERNS: usize = 20_000;

/// Commits that one call walks over.
pub(crate) const MAX_COMMITS: usize = 300_000;

/// Parents of one commit.
pub(crate) const MAX_PARENTS: usize = 1_000;

/// Steps of `~` and `^` in one revision.
pub(crate) const MAX_REVISION_STEPS: usize = 100_000;

/// Pairs of files that are compared to find a rename. git's own limit is a million; these are compared in a call's time.
pub(crate) const MAX_RENAME_PAIRS: usize = 20_000;

/// Bytes that a command prints. 8 MiB: the shell keeps far less of it.
pub(crate) const MAX_OUTPUT_BYTES: usize = 8 << 20;

/// Bytes of a commit's message.
pub(crate) const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Directories that are looked at for `.git`.
pub(crate) const MAX_PARENT_DIRECTORIES: usize = 256;

/// Bytes of the references that a server advertises. 8 MiB: as `packed-refs`.
pub(crate) const MAX_ADVERTISEMENT_BYTES: u64 = 8 << 20;

/// Bytes of a server's report on a push, with the messages of its hooks.
pub(crate) const MAX_REPORT_BYTES: u64 = 1 << 20;

/// Bytes of one message of a server that are printed.
pub(crate) const MAX_REMOTE_TEXT_BYTES: usize = 4 << 10;

/// References that one push changes.
pub(crate) const MAX_PUSHED_REFERENCES: usize = 1_000;

/// Objects of a pack that is sent.
pub(crate) const MAX_PUSHED_OBJECTS: usize = 100_000;

/// Bytes of a pack that is sent. 10 MiB: the host lets no more out in one call by default, and the pack is held in memory.
pub(crate) const MAX_PACK_BYTES: usize = 10 << 20;

/// Headers of the command line (`-c http.extraHeader`).
pub(crate) const MAX_EXTRA_HEADERS: usize = 16;
