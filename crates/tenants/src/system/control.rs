//! Parses the keys of a tenant about its control socket.

use super::process::size;
use super::section::{Reader, Section};
use super::{ControlQuotas, Entry, System, TenantControl};
use castanet_lang::Diagnostic;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;

const CONTROL_KEYS: &[&str] =
    &["socket", "group", "installs_per_minute", "elements", "text", "commands_per_second"];

/// Quotas where the file says nothing.
const INSTALLS_PER_MINUTE: u32 = 10;
const ELEMENTS: u32 = 10_000;
const TEXT: u64 = 64 << 10;
const COMMANDS_PER_SECOND: u32 = 100;
/// The most of them, beyond which they would not protect others.
const MOST: RangeInclusive<u32> = 1..=1_000_000;
/// The bytes that a text may have: a command of a control socket has room for the most of them.
const TEXTS: RangeInclusive<u64> = 1..=4 << 20;

impl Reader<'_> {
    /// The control socket of a tenant; `None` if it has none.
    pub(super) fn control(&mut self, it: &Section<'_>) -> Option<Entry<TenantControl>> {
        let title = format!("`control` of {}", it.title);
        let control = self.section(title, Reader::inner(it, "control")?, CONTROL_KEYS, &[])?;
        let socket = self.path(&control, "socket");
        if socket.is_none() && !Reader::has(&control, "socket") {
            let help = "write `control = { socket = \"NAME.sock\" }`";
            self.error(control.span, format!("{} has no socket", control.title), help);
        }
        let mut quota = |key, default| {
            let given = self.number(&control, key, MOST);
            given.map_or(default, |it| it.value)
        };
        let installs_per_minute = quota("installs_per_minute", INSTALLS_PER_MINUTE);
        let elements = quota("elements", ELEMENTS);
        let commands_per_second = quota("commands_per_second", COMMANDS_PER_SECOND);
        let wants = format!("a size such as \"64K\", up to {}M", TEXTS.end() >> 20);
        let text = self.text_by(&control, "text", &wants, |text| {
            size(text).filter(|size| TEXTS.contains(size))
        });
        let text = text.map_or(TEXT, |it| it.value);
        let quotas = ControlQuotas { installs_per_minute, elements, text, commands_per_second };
        let group = self.text(&control, "group");
        let value = TenantControl { socket: socket?, group, quotas };
        Some(Entry { value, span: control.span })
    }

    /// Reports control sockets that two tenants share.
    pub(super) fn check_sockets(&mut self, system: &System) {
        let mut owners: HashMap<&Path, (&str, castanet_lang::Span)> = HashMap::new();
        for tenant in &system.tenants {
            let Some(control) = &tenant.control else { continue };
            let own = (tenant.name.as_str(), control.span);
            let owner = *owners.entry(&control.value.socket.value).or_insert(own);
            if owner.0 != tenant.name {
                let socket = control.value.socket.value.display();
                let message = format!("`{socket}` is the control socket of another tenant, too");
                let diagnostic = Diagnostic::error(control.span, message);
                let note = format!("that of tenant `{}` is here", owner.0);
                self.found.push(diagnostic.with_note(owner.1, note));
            }
        }
    }
}
