//! Transformations of flat graphs: those of Click's tools such as `click-xform` and `click-align`.
//!
//! Each is a function from graphs to graphs, which uses neither the machine nor the element
//! library. Facts about element classes are in `classes`.

mod align;
mod alignment;
mod classes;
mod combine;
mod editor;
mod uncombine;
mod undead;
mod variables;
mod xform;

pub use align::{AlignOutput, align, assert_alignment};
pub use alignment::Alignment;
pub use combine::{CombineOutput, RouterComponent, combine};
pub use uncombine::{components, uncombine};
pub use undead::{UndeadOutput, undead};
pub use variables::expand_keeping_variables;
pub use xform::{Pattern, TransformOutput, patterns, transform};
