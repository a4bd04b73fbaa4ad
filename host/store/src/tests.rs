//! What the store promises, on real files, and where it makes no difference on a simulated disk too.

mod backend;
mod commit;
mod crash;
mod damage;
mod disk;
mod growth;
mod scan;
mod simulated;
mod speed;
