//! The guarantees of the store, on real files and, if it makes no difference, on a simulated disk too.

mod backend;
mod commit;
mod crash;
mod damage;
mod disk;
mod growth;
mod scan;
mod simulated;
mod speed;
