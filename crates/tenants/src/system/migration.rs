//! Parses the table `migration` of a system file.

use super::Migration;
use super::section::{Reader, Section};
use std::net::SocketAddr;

const MIGRATION_KEYS: &[&str] = &["listen", "key"];

impl Reader<'_> {
    /// How tenants move; `None` if the file does not say.
    pub(super) fn migration(&mut self, whole: &Section<'_>) -> Option<Migration> {
        let value = Reader::inner(whole, "migration")?;
        let it = self.section("`migration`".to_owned(), value, MIGRATION_KEYS, &[])?;
        let listen =
            self.parsed::<SocketAddr>(&it, "listen", "an address such as \"192.0.2.1:4790\"");
        let key = self.path(&it, "key");
        if key.is_none() && !Reader::has(&it, "key") {
            let help = "write `key = \"FILE\"`; `castanet tenants key FILE` makes one";
            self.error(it.span, "`migration` has no key", help);
        }
        Some(Migration { listen, key: key? })
    }
}
