//! Absurd numbers as arguments of all elements.

use castanet_bench::example::{Numbers, without_waits};
use castanet_elements::{ROOMS, library};
use std::path::Path;

#[test]
fn numbers_end_nothing() {
    let classes = ROOMS.iter().flat_map(|(_, classes)| classes.iter());
    // These keep a worker busy for as long as their arguments say: minutes.
    let busy = ["BlockThread", "WorkPackage"];
    let tested = classes.filter(|class| !busy.contains(&class.spec.class));
    // The example of a class with the most packets.
    let longest = |class| without_waits(class).max_by_key(|text| text.matches("\n>").count());
    let numbers = Numbers {
        test: "numbers_end_nothing",
        under: &[],
        folder: &Path::new(env!("CARGO_TARGET_TMPDIR")).join("numbers"),
        library: &library(),
        examples: tested.filter_map(|class| Some((class, longest(class)?))).collect(),
    };
    numbers.end_nothing().unwrap_or_else(|error| panic!("{error}"));
}
