//! What the store promises, on real files.

mod commit;
mod crash;
mod damage;
mod disk;
mod growth;
mod scan;
mod speed;
