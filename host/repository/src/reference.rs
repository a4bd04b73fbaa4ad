//! Moving a reference by compare-and-swap.

use gix::bstr::ByteSlice as _;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target};

use crate::error::{CommitError, Result};
use crate::intent::{Intent, Standing, id};
use crate::open::Repository;

/// The most commits that are looked at to find one below another.
const MAX_WALKED: usize = 10_000;

impl Repository {
    /// Opens the repository of an intent.
    ///
    /// # Errors
    /// If it is not there any more.
    pub fn of(intent: &Intent) -> Result<Self> {
        let found = Self::open(&intent.directory)?;
        if found.repo.git_dir() != intent.git_dir {
            return Err(CommitError::NoRepository(crate::error::shown(&intent.directory)));
        }
        Ok(found)
    }

    /// Where the reference of an intent is now.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn standing(&self, intent: &Intent) -> Result<Standing> {
        let value = self.value(&intent.reference)?;
        if value == intent.new {
            return Ok(Standing::After);
        }
        if value == intent.old {
            // The files of another branch are in the working tree otherwise.
            let checked_out = !intent.is_head || self.head()? == intent.reference;
            return Ok(if checked_out { Standing::Before } else { Standing::Elsewhere });
        }
        match (&value, &intent.new) {
            // After it is taken back, everything is built on the parent.
            (Some(value), Some(new)) if intent.makes() && self.is_below(new, value)? => Ok(Standing::BuiltOn),
            _ => Ok(Standing::Elsewhere),
        }
    }

    /// Moves the reference if it is at the old value, and tells where it is then: anything but [`Standing::After`] and
    /// [`Standing::BuiltOn`] means that the owner moved it, and it stays.
    ///
    /// # Errors
    /// If it cannot be moved; it can be tried again.
    pub fn move_reference(&self, intent: &Intent) -> Result<Standing> {
        let standing = self.standing(intent)?;
        if standing != Standing::Before {
            return Ok(standing);
        }
        let signature = intent.who.signature();
        let mut time = gix::date::parse::TimeBuf::default();
        let edited = self.repo.edit_references_as([edit(intent)?], Some(signature.to_ref(&mut time)));
        match (edited, self.standing(intent)?) {
            // It can have been the owner who moved it in between.
            (Err(error), Standing::Before) => Err(CommitError::failed("the reference cannot be moved")(error)),
            (_, standing) => {
                self.sync()?;
                Ok(standing)
            }
        }
    }

    /// The full name of the branch that is checked out, or `HEAD`.
    pub(crate) fn head(&self) -> Result<String> {
        let name = self.repo.head_name().map_err(CommitError::failed("HEAD cannot be read"))?;
        Ok(name.map_or_else(|| "HEAD".to_owned(), |name| name.as_bstr().to_string()))
    }

    /// The value of the reference of this full name.
    pub(crate) fn value(&self, name: &str) -> Result<Option<String>> {
        let failed = || CommitError::failed::<gix::Error>("a reference cannot be read");
        let found = self.repo.try_find_reference(name).map_err(failed())?;
        // A name that is not there is also looked for as the end of others.
        let Some(mut found) = found.filter(|found| found.name().as_bstr() == name.as_bytes().as_bstr()) else {
            return Ok(None);
        };
        let id = found.peel_to_id().map_err(failed())?;
        Ok(Some(id.to_hex().to_string()))
    }

    fn is_below(&self, commit: &str, tip: &str) -> Result<bool> {
        let commit = id(commit)?;
        let Ok(walk) = self.repo.rev_walk([id(tip)?]).all() else { return Ok(false) };
        Ok(walk.take(MAX_WALKED).map_while(|found| found.ok()).any(|found| found.id == commit))
    }
}

fn edit(intent: &Intent) -> Result<RefEdit> {
    let named = |name: &str| FullName::try_from(name).map_err(|_| CommitError::Damaged);
    let target = |hex: &String| id(hex).map(Target::Object);
    let old = intent.old.as_ref().map(target).transpose()?;
    let Some(new) = &intent.new else {
        let expected = PreviousValue::MustExistAndMatch(old.ok_or(CommitError::Damaged)?);
        let change = Change::Delete { expected, log: RefLog::AndReference };
        return Ok(RefEdit { change, name: named(&intent.reference)?, deref: false });
    };
    let log = LogChange { message: intent.log.as_str().into(), ..LogChange::default() };
    let expected = old.map_or(PreviousValue::MustNotExist, PreviousValue::MustExistAndMatch);
    let change = Change::Update { log, expected, new: target(new)? };
    // By way of HEAD the move is in its log, too.
    let name = if intent.is_head { "HEAD" } else { &intent.reference };
    Ok(RefEdit { change, name: named(name)?, deref: intent.is_head })
}
