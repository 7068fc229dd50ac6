//! Handlers about the memory of accounts and its limits.

use super::Router;
use super::accounts::optional;
use crate::graph::assign::{AccountPlan, Assignment};
use castanet_element::account::{AccountMemory, HeapSize};
use castanet_element::error::ArgError;
use castanet_element::handler::HandlerDoc;
use std::sync::Arc;

/// Read handlers of elements that declare limits of memory.
pub const READS: &[HandlerDoc] = &[
    HandlerDoc { name: "heap", doc: "Bytes of the account's tables and queues on the heap." },
    HandlerDoc {
        name: "heap_limit",
        doc: "Bytes on the heap at which the account's elements keep no more packets; `none` without a limit.",
    },
    HandlerDoc { name: "packets", doc: "Packets that the account's elements keep." },
    HandlerDoc {
        name: "packet_limit",
        doc: "Packets that the account's elements keep at most; `none` without a limit.",
    },
];

/// Write handlers of elements that declare limits of memory.
pub const WRITES: &[HandlerDoc] = &[
    HandlerDoc { name: "heap_limit", doc: "Sets the limit of the heap, or `none`." },
    HandlerDoc { name: "packet_limit", doc: "Sets the limit of packets, or `none`." },
];

/// The account whose limits an element declares.
pub(super) fn declared(plan: &Assignment, element: usize) -> Option<usize> {
    let declares = |account: &AccountPlan| {
        account.limits.as_ref().is_some_and(|limits| limits.element == Some(element))
    };
    plan.accounts.iter().position(declares)
}

fn limit_text(limit: Option<usize>) -> String {
    limit.map_or("none".to_owned(), |limit| limit.to_string())
}

impl Router {
    /// Reads a handler of limits of memory; `None` if it is none.
    pub(super) fn read_memory(&self, element: usize, name: &str) -> Option<String> {
        let account = &self.config.assigned.accounts[declared(&self.config.assigned, element)?];
        let memory: &Arc<AccountMemory> = account.memory.as_ref()?;
        Some(match name {
            "heap" => memory.heap_bytes().to_string(),
            "heap_limit" => limit_text(memory.heap_limit()),
            "packets" => memory.packets().to_string(),
            "packet_limit" => limit_text(memory.packet_limit()),
            _ => return None,
        })
    }

    /// Writes a handler of limits of memory; `None` if it is none.
    pub(super) fn write_memory(
        &mut self,
        element: usize,
        name: &str,
        value: &str,
    ) -> Option<Result<(), ArgError>> {
        let account = declared(&self.config.assigned, element)?;
        let account = &mut self.config.assigned.accounts[account];
        let limits = account.limits.as_mut()?;
        let value = value.trim();
        let changed = match name {
            "heap_limit" => optional::<HeapSize>(value).map(|size| {
                limits.heap = size.map(|size| size.0);
            }),
            "packet_limit" => optional(value).map(|limit| limits.packets = limit),
            _ => return None,
        };
        account.apply_limits();
        Some(changed.map_err(|error| error.of_handler(name)))
    }
}
