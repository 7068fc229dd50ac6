//! Parses the keys of a tenant about a process of its own.

use super::section::{Reader, Section};
use super::{Entry, Memory, OwnProcess};
use crate::sandbox::Protection;
use castanet_element::args::{FromArg, Names};
use castanet_lang::nearest;
use std::time::Duration;

/// Values of `isolation`.
const ISOLATIONS: [&str; 2] = ["in-process", "process"];
/// Keys that are about a process.
const PROCESS_KEYS: [&str; 2] = ["require", "patience"];
/// The least memory in which a router runs.
const LEAST_MEMORY: u64 = 32 << 20;
/// The longest time without progress, where the file says nothing.
const PATIENCE: Duration = Duration::from_secs(10);

impl Reader<'_> {
    /// The process of a tenant's own; `None` if the tenant has none.
    pub(super) fn process(
        &mut self,
        it: &Section<'_>,
        memory: Option<&Entry<Memory>>,
    ) -> Option<Entry<OwnProcess>> {
        let isolation = self.text(it, "isolation");
        if let Some(isolation) = &isolation
            && !ISOLATIONS.contains(&isolation.value.as_str())
        {
            let message =
                format!("`isolation` of {} is not `{}`", it.title, ISOLATIONS.join("` or `"));
            let near = nearest(&isolation.value, ISOLATIONS);
            let help = near.unwrap_or("process").to_owned();
            self.error(isolation.span, message, format!("write `isolation = \"{help}\"`"));
            return None;
        }
        let is_readable = isolation.is_some() || !Reader::has(it, "isolation");
        let Some(isolation) = isolation.filter(|it| it.value == "process") else {
            if is_readable {
                self.refuse_process_keys(it, memory);
            }
            return None;
        };
        if let Some(memory) =
            memory.filter(|it| it.value.heap.is_some() || it.value.packets.is_some())
        {
            let message =
                format!("{} has a process of its own, whose memory is not told apart", it.title);
            self.error(memory.span, message, "write `memory = { process = \"256M\" }`");
        }
        let memory = memory.and_then(|it| it.value.process.as_ref()).map(|it| it.value);
        let wants = "a time such as \"10s\", from 100 ms to an hour";
        let patience = self.text_by(it, "patience", wants, |text| {
            let time = Duration::from_arg(text, &Names::default()).ok()?;
            (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&time).then_some(time)
        });
        let require = self.protections(it);
        let patience = patience.map_or(PATIENCE, |it| it.value);
        let value = OwnProcess { memory, require, patience };
        Some(Entry { value, span: isolation.span })
    }

    /// Reports keys that have no meaning for a tenant without a process of its own.
    fn refuse_process_keys(&mut self, it: &Section<'_>, memory: Option<&Entry<Memory>>) {
        const HELP: &str = "write `isolation = \"process\"`, too";
        if let Some(process) = memory.and_then(|it| it.value.process.as_ref()) {
            let message =
                format!("`process` of `memory` of {} is about a process of its own", it.title);
            self.error(process.span, message, HELP);
        }
        for key in PROCESS_KEYS.into_iter().filter(|key| Reader::has(it, key)) {
            let message = format!("`{key}` of {} is about a process of its own", it.title);
            let span = self.span(Reader::inner(it, key).map_or(0..0, toml::Spanned::span));
            self.error(span, message, HELP);
        }
    }

    /// The memory of a process.
    pub(super) fn process_memory(&mut self, memory: &Section<'_>) -> Option<Entry<u64>> {
        let wants = format!("a size such as \"256M\", at least {}M", LEAST_MEMORY >> 20);
        self.text_by(memory, "process", &wants, |text| size(text).filter(|it| *it >= LEAST_MEMORY))
    }

    fn protections(&mut self, it: &Section<'_>) -> Vec<Protection> {
        let names = self.list::<String>(it, "require", "names of protections");
        let mut all = Vec::new();
        for name in names.map(|it| it.value).unwrap_or_default() {
            match name.value.parse() {
                Ok(protection) => all.push(protection),
                Err(()) => {
                    let known = Protection::ALL.map(Protection::name);
                    let help = match nearest(&name.value, known) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("they are {}", known.join(", ")),
                    };
                    let message = format!("there is no protection `{}`", name.value);
                    self.error(name.span, message, help);
                }
            }
        }
        all
    }
}

/// Bytes: a number, with K, M or G behind it for powers of 1024.
pub(super) fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
