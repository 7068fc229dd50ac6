//! Flow rules of a port: from a file or a line to the port, and as lists.

use crate::error::IoError;
use crate::sys::dpdk::{FlowTable, InstalledRule, Port, PortInfo};
use crate::text_file::LineReader;
use castanet_kit::flow_rules::{FlowRule, ITEMS};
use std::sync::{Arc, MutexGuard, PoisonError};

/// Reads the rules of a file, one a line; lines that are empty or begin with `#` are none.
pub(crate) fn read(path: &str) -> Result<Vec<FlowRule>, IoError> {
    let mut lines = LineReader::open(path)?;
    let mut rules = Vec::new();
    let failed = |error| IoError::File { path: path.into(), error };
    loop {
        let Some(line) = lines.next_line().map_err(failed)? else { return Ok(rules) };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let rule = FlowRule::parse(line);
        let doing = || "read flow rules".to_owned();
        let at =
            |why| IoError::Unfit { doing: doing(), why: format!("{}: {why}", lines.landmark()) };
        rules.push(rule.map_err(at)?);
    }
}

/// The flow rules of a port.
pub(crate) struct PortRules {
    port: Arc<Port>,
    name: String,
}

impl PortRules {
    pub(super) fn new(port: Arc<Port>, info: &PortInfo) -> PortRules {
        PortRules { port, name: info.name() }
    }

    fn table(&self) -> MutexGuard<'_, FlowTable> {
        self.port.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a rule; returns its number.
    pub(crate) fn add(&self, rule: FlowRule) -> Result<u32, IoError> {
        // The order of locks is that of a start: configuration, then rules.
        let queues = self.port.queues().0;
        let added = self.table().add(&self.port, queues, rule);
        let doing = || format!("have a flow rule on {}", self.name);
        added.map_err(|why| IoError::Unfit { doing: doing(), why })
    }

    /// Removes a rule.
    pub(crate) fn remove(&self, id: u32) -> Result<(), IoError> {
        let removed = self.table().remove(&self.port, id);
        let doing = || format!("remove a flow rule from {}", self.name);
        removed.map_err(|why| IoError::Unfit { doing: doing(), why })
    }

    /// Numbers of all rules.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.table().rules().iter().map(|rule| rule.id).collect()
    }

    /// Whether the port receives only what its rules say.
    pub(crate) fn is_isolated(&self) -> bool {
        self.table().isolated
    }

    /// Isolates the running port, or ends that.
    pub(crate) fn isolate(&self, on: bool) -> Result<(), IoError> {
        let mut table = self.table();
        let doing = || format!("isolate the flows of {}", self.name);
        self.port.isolate(on).map_err(|why| IoError::Unfit { doing: doing(), why })?;
        table.isolated = on;
        Ok(())
    }

    /// Packets and bytes that matched a rule; `None` if there is no such rule, if it has no action
    /// `count`, or if the driver does not answer.
    pub(crate) fn counts(&self, id: u32) -> Option<(u64, u64)> {
        let table = self.table();
        let rule = table.rules().iter().find(|rule| rule.id == id)?;
        rule.counts(&self.port)?.ok()
    }

    /// The rules in a line each, by group, priority and number; only those that have matched if
    /// `matched`.
    pub(crate) fn list(&self, matched: bool) -> String {
        let table = self.table();
        let mut rules: Vec<_> = table.rules().iter().collect();
        rules.sort_by_key(|it| (it.rule.group, it.rule.priority, it.id));
        let counted = rules.into_iter().map(|it| {
            let counts = it.counts(&self.port).and_then(Result::ok);
            (it, counts.unwrap_or_default())
        });
        let shown = counted.filter(|(_, (packets, _))| !matched || *packets > 0);
        shown.map(|(rule, counts)| line(rule, counts)).collect()
    }
}

/// A rule in FastClick's form.
fn line(installed: &InstalledRule, (packets, bytes): (u64, u64)) -> String {
    let FlowRule { group, priority, ingress, egress, transfer, .. } = installed.rule;
    let direction = |is: bool, name| if is { name } else { "-" };
    let items = installed.rule.pattern.iter().map(|item| ITEMS[item.kind].name);
    let actions = installed.rule.actions.iter().map(|action| action.name());
    let names = |names: &mut dyn Iterator<Item = &str>| {
        names.map(|name| format!(" {}", name.to_uppercase().replace('-', "_"))).collect::<String>()
    };
    let (items, actions) = (names(&mut items.into_iter()), names(&mut actions.into_iter()));
    format!(
        "Flow rule #{}: [Group: {group}, Prio: {priority}, Scope: {}/{}/{}, Matches:{items} => \
         Actions:{actions}, Stats: Matched packets: {packets}, Matched bytes: {bytes}]\n",
        installed.id,
        direction(ingress, "ingress"),
        direction(egress, "egress"),
        direction(transfer, "transfer"),
    )
}
