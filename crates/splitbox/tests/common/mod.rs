//! The folder with the files of all parties, in which the examples of the manual run.

use castanet_splitbox::digest::HashKind;
use castanet_splitbox::function::NetworkFunction;
use castanet_splitbox::party_file::{self, Unlock};
use castanet_splitbox::policy;
use castanet_splitbox::setup::{BlindUse, Setup, SetupOptions};
use std::path::Path;
use std::sync::Once;

/// The sizes of the setups of these tests.
pub(crate) const OPTIONS: SetupOptions = SetupOptions {
    processors: 2,
    hash: HashKind::Blake3,
    header_bits: 0,
    blinds: 64,
    blind_use: BlindUse::Again,
    lanes: 2,
    has_constant_work: false,
};

/// Makes the files of a firewall that lets port 80 pass, and goes to their folder. `folder` is one for
/// each test program.
pub(crate) fn enter(folder: &str) {
    static ENTERED: Once = Once::new();
    ENTERED.call_once(|| {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&parent).expect("a folder");
        // A test may start its own program again, which needs a folder of its own; those of processes that
        // have ended go.
        for old in std::fs::read_dir(&parent).expect("is there").flatten() {
            if !Path::new("/proc").join(old.file_name()).exists() {
                _ = std::fs::remove_dir_all(old.path());
            }
        }
        let folder = parent.join(std::process::id().to_string());
        std::fs::create_dir_all(&folder).expect("a folder");
        std::env::set_current_dir(&folder).expect("is there");
        party_file::make_key_file(Path::new("key")).expect("a key");
        let variants = [
            ("", BlindUse::Again, 0, true),
            ("once", BlindUse::Once, 0, true),
            ("dummies", BlindUse::Again, 300_000, true),
            ("open", BlindUse::Again, 0, false),
        ];
        for (name, blind_use, dummies, has_rules) in variants {
            let rules = ["allow tcp dst port 80", "deny all"];
            let mut policy = policy::ip_filter(&rules).expect("rules");
            if !has_rules {
                policy.function = NetworkFunction::first_match(Vec::new());
            }
            let header_bits = policy.header_bits;
            let options = SetupOptions { blind_use, header_bits, ..OPTIONS };
            let mut setup = Setup::new(&policy.function, options).expect("a setup");
            setup.entry.dummies_per_million = dummies;
            let folder = Path::new(".").join(name);
            std::fs::create_dir_all(&folder).expect("a folder");
            party_file::save(&setup, &folder, &Unlock::KeyFile("key".into()), false)
                .expect("files");
        }
    });
}
