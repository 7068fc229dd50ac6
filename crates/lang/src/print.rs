//! Configurations as text and as drawings.

mod flat;

pub use flat::flat;
