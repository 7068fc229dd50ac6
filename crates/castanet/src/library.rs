//! Every class that a configuration may name.

use castanet_element::class::{Class, Library};
use castanet_element::manual;
use castanet_elements::families;

/// Classes that are in other builds of the program, each with how to get it.
const ABSENT: &[(&str, &str)] = &[(
    "WasmElement",
    "this program was built without WebAssembly; \
     `cargo build --release --package castanet --features wasm` builds one with it",
)];

/// The rooms with their classes, in the order of the manual.
pub(crate) fn rooms() -> Vec<(&'static str, &'static [Class])> {
    let mut rooms = castanet_elements::ROOMS.to_vec();
    rooms.push(("io", castanet_io::elements::CLASSES));
    rooms.push(("middlebox", castanet_middlebox::CLASSES));
    rooms.push(("splitbox", castanet_splitbox::CLASSES));
    #[cfg(feature = "wasm")]
    rooms.push(("wasm", castanet_wasm::CLASSES));
    rooms.push(("tenants", castanet_tenants::CLASSES));
    rooms
}

/// The manual page of a class, as Markdown.
pub(crate) fn manual_page(class: &Class) -> String {
    let all: Vec<&Class> = rooms().into_iter().flat_map(|(_, classes)| classes).collect();
    manual::page(class, families::see_also(class, &all))
}

/// Every class by name.
pub(crate) fn library() -> Library {
    let mut library = Library::default();
    ABSENT.iter().for_each(|&(name, help)| library.add_absent(name, help));
    rooms().iter().flat_map(|(_, classes)| classes.iter()).for_each(|class| library.add(class));
    // Of chains of one length the first is chosen.
    library.fuse(crate::program::fusions());
    library.fuse(castanet_elements::FUSIONS);
    library
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use castanet_element::class::per_packet;
    use castanet_element::prelude::*;

    /// Panics at packets, if its argument says so.
    #[derive(Clone, Element)]
    #[element(room = "test")]
    struct Fault {
        /// Whether it panics.
        #[arg]
        panics: bool,
    }

    impl PerPacket for Fault {
        type On = on::Any;
        type Local = ();
        type Fate = ();
        fn packet(&self, (): &mut (), _: &mut Packet) {
            assert!(!self.panics, "a fault, as the test wants");
        }
    }

    static FAULTY: &[Class] = &[per_packet::<Fault>()];

    /// Every class, and `Fault`, which panics.
    pub(crate) fn faulty_library() -> Library {
        let mut library = library();
        FAULTY.iter().for_each(|class| library.add(class));
        library
    }

    #[test]
    fn classes_of_devices_files_and_sockets_name_their_resources() {
        let opens = |class: &Class| {
            let has = |arg: &castanet_element::args::ArgSpec| {
                ["FILENAME", "OUTFILE", "FILE", "DEVNAME"].contains(&arg.name)
            };
            class.factory.device.is_some() || class.args.iter().any(has)
        };
        let (mut count, mut silent) = (0, Vec::new());
        for class in rooms().iter().flat_map(|(_, classes)| classes.iter()) {
            count += usize::from(class.factory.resources.is_some());
            if opens(class) && class.factory.resources.is_none() {
                silent.push(class.spec.class);
            }
        }
        assert!(silent.is_empty(), "{silent:?}");
        assert!(count >= 20, "{count}");
    }
}
