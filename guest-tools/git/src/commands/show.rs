//! `git show`.

use bstr::ByteSlice as _;
use gix_hash::ObjectId;
use gix_object::{Kind, TagRef};

use super::log::{LogOptions, print};
use super::pretty::{DateForm, Printer};
use crate::diff::Format;
use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::ident::Signature;
use crate::limits::MAX_TAG_DEPTH;
use crate::objects::HASH;
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::repository::Repository;
use crate::{quote, revision, tree};

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let mut options = LogOptions::parse(repository, "show", arguments)?;
    if options.diff.formats.is_empty() && !options.diff.nothing {
        options.diff.formats.push(Format::Patch);
    }
    options.combined = !options.first_parent_diff;
    let paths = Pathspec::parse(repository, &options.paths)?;
    let printer = options.printer(repository)?;
    let names = if options.revisions.is_empty() { vec!["HEAD".to_owned()] } else { options.revisions.clone() };
    let mut first = true;
    for name in &names {
        if let Some((from, to, _)) = super::diff::range(name) {
            return Err(Fault::unsupported(format_args!("`git show {name}`; use `git log -p {from}..{to}`")));
        }
        let id = revision::resolve(repository, name)?;
        let mut call = Show { printer: &printer, options: &options, paths: &paths, first, out };
        call.object(name, id, 0)?;
        first = call.first;
    }
    Ok(0)
}

struct Show<'a, 'b> {
    printer: &'a Printer<'b>,
    options: &'a LogOptions,
    paths: &'a Pathspec,
    first: bool,
    out: &'a mut Output,
}

impl Show<'_, '_> {
    fn object(&mut self, name: &str, id: ObjectId, depth: usize) -> Result<()> {
        if depth > MAX_TAG_DEPTH {
            return Err(Fault::limit(format_args!("a tag leads through more than {MAX_TAG_DEPTH} tags")));
        }
        let repository = self.printer.repository;
        let object = repository.objects.read(&id)?;
        match object.kind {
            Kind::Blob => self.out.put(object.data.as_slice()),
            Kind::Commit => {
                let commit = Commit::read(repository, &id)?;
                print(self.printer, &commit, self.options, self.paths, self.first, self.out)?;
                self.first = false;
                Ok(())
            }
            Kind::Tree => {
                if !self.first {
                    self.out.put("\n")?;
                }
                self.out.put(format!("tree {name}\n\n"))?;
                for child in tree::children(&repository.objects, &id)? {
                    let slash = if child.is_tree() { "/" } else { "" };
                    self.out.put(format!("{}{slash}\n", quote::name(child.name.as_bstr())))?;
                }
                self.first = false;
                Ok(())
            }
            Kind::Tag => {
                let tag = TagRef::from_bytes(&object.data, HASH)
                    .map_err(|_| Fault::corrupt(format_args!("the tag {id} cannot be read")))?;
                if !self.first {
                    self.out.put("\n")?;
                }
                self.out.put(format!("tag {}\n", tag.name))?;
                if let Some(tagger) = tag.tagger {
                    let who = Signature::parse(tagger);
                    let date = self.printer.date(who.time, DateForm::Default);
                    self.out.put(format!("Tagger: {} <{}>\nDate:   {date}\n", who.name, who.email))?;
                }
                // The message is printed as it stands, with a signature that it may have.
                let text = object.data.find("\n\n").and_then(|end| object.data.get(end.saturating_add(1)..));
                self.out.put(text.unwrap_or_default())?;
                self.first = false;
                self.object(name, tag.target(), depth.saturating_add(1))
            }
        }
    }
}
