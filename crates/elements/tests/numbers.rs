//! Absurd numbers as arguments of all elements.

use castanet_bench::example::{Numbers, without_waits};
use castanet_element::class::Class;
use castanet_elements::{ROOMS, library};
use std::path::Path;

/// An example to whose elements no packets come.
fn without_packets(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with(['>', '<']));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.replace("in ->", "Idle ->").replace("-> out", "-> Discard")
}

#[test]
fn numbers_end_nothing() {
    let classes = ROOMS.iter().flat_map(|(_, classes)| classes.iter());
    // BlockThread blocks a worker for as long as its argument says.
    let tested = classes.filter(|class| class.spec.class != "BlockThread");
    // The example of a class with the most packets.
    let longest = |class: &Class| {
        let text = without_waits(class).max_by_key(|text| text.matches("\n>").count())?;
        // WorkPackage works for minutes on a packet, if its arguments say so.
        Some(if class.spec.class == "WorkPackage" { without_packets(&text) } else { text })
    };
    let numbers = Numbers {
        test: "numbers_end_nothing",
        under: &[],
        folder: &Path::new(env!("CARGO_TARGET_TMPDIR")).join("numbers"),
        library: &library(),
        examples: tested.filter_map(|class| Some((class, longest(class)?))).collect(),
    };
    numbers.end_nothing().unwrap_or_else(|error| panic!("{error}"));
}
