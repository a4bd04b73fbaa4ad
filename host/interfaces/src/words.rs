//! The words in which the owner is told about a decision: the same on the terminal and on the page.

pub(crate) mod approval;
pub(crate) mod card;
pub(crate) mod commit;
pub(crate) mod cost;
pub(crate) mod explanation;
pub(crate) mod facts;
pub(crate) mod landing;
pub(crate) mod plan;
pub(crate) mod review;
pub(crate) mod staged;
