//! Configurations as text and as drawings.

mod dot;
mod flat;
mod layout;
mod look;
mod pretty;
mod svg;

pub use dot::dot;
pub use flat::flat;
pub use look::{Kind, Plain, PortKinds};
pub use pretty::pretty;
pub use svg::svg;
