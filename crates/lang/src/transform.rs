//! Changes of flat graphs: what Click's tools do to a configuration on its way to a router.
//!
//! Each is a function from graphs to graphs; none asks the machine or the element library. What
//! they know of classes stands in `facts`.

mod align;
mod alignment;
mod combine;
mod edit;
mod facts;
mod keep;
mod uncombine;
mod undead;
mod xform;

pub use align::{Aligned, align, assert_alignment};
pub use alignment::Alignment;
pub use combine::{Combined, Part, combine};
pub use keep::expand_keeping;
pub use uncombine::{components, uncombine};
pub use undead::{Undead, undead};
pub use xform::{Pattern, Transformed, patterns, transform};
