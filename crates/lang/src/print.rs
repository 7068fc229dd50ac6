//! Prints configurations as text, XML, HTML and drawings.

mod dot;
mod drawing_info;
mod flat;
mod html;
mod layout;
mod pretty;
mod svg;
mod xml;

pub use dot::dot;
pub use drawing_info::{ConnectionKind, DrawingInfo, NoDrawingInfo};
pub use flat::{flat, flat_by_age};
pub use html::{HtmlLinks, escape, html};
pub use pretty::pretty;
pub use svg::svg;
pub use xml::xml;
