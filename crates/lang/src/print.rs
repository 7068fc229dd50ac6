//! Configurations as text and as drawings.

mod dot;
mod flat;
mod html;
mod layout;
mod look;
mod pretty;
mod svg;
mod xml;

pub use dot::dot;
pub use flat::flat;
pub use html::{Links, escape, html};
pub use look::{Kind, Plain, PortKinds};
pub use pretty::pretty;
pub use svg::svg;
pub use xml::xml;
