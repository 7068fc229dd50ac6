//! The flow rules of a port, which are created again when the port is set up anew.

use super::{Flow, Port};
use castanet_kit::flow_rules::FlowRule;

/// The flow rules of a port, and their numbers.
#[derive(Default)]
pub(crate) struct FlowTable {
    rules: Vec<InstalledRule>,
    /// The number of the next rule.
    next: u32,
    /// Whether the port receives only what its rules say.
    pub(crate) isolated: bool,
}

/// A rule of a port.
pub(crate) struct InstalledRule {
    /// Its number, which no other rule of the port has had.
    pub(crate) id: u32,
    pub(crate) rule: FlowRule,
    /// The driver's rule; `None` while the port is set up.
    flow: Option<Flow>,
}

impl InstalledRule {
    /// Packets and bytes that matched the rule; `None` if the rule does not count.
    pub(crate) fn counts(&self, port: &Port) -> Option<Result<(u64, u64), String>> {
        let counter = self.rule.counter()?;
        let flow = self.flow.as_ref()?;
        Some(port.flow_counts(flow, counter))
    }
}

impl FlowTable {
    /// The rules, oldest first.
    pub(crate) fn rules(&self) -> &[InstalledRule] {
        &self.rules
    }

    /// Creates a rule on a running port of this many receive queues; returns its number.
    pub(crate) fn add(&mut self, port: &Port, queues: u16, rule: FlowRule) -> Result<u32, String> {
        let flow = Some(create(port, queues, &rule)?);
        let id = self.next;
        self.next += 1;
        self.rules.push(InstalledRule { id, rule, flow });
        Ok(id)
    }

    /// Removes a rule; one that the driver does not remove stays.
    pub(crate) fn remove(&mut self, port: &Port, id: u32) -> Result<(), String> {
        let at = self.rules.iter().position(|rule| rule.id == id);
        let at = at.ok_or_else(|| format!("there is no rule {id}"))?;
        if let Some(flow) = &self.rules[at].flow {
            port.destroy_flow(flow).map_err(|why| format!("cannot remove rule {id}: {why}"))?;
        }
        self.rules.remove(at);
        Ok(())
    }

    /// Removes the rules from a port that is to stop, but remembers them.
    #[cfg_attr(not(dpdk), expect(dead_code, reason = "ports exist only with DPDK"))]
    pub(crate) fn suspend(&mut self, port: &Port) {
        for rule in self.rules.iter_mut().rev() {
            // A rule that the driver does not remove now ends when the port stops.
            rule.flow.take().into_iter().for_each(|flow| drop(port.destroy_flow(&flow)));
        }
    }

    /// Creates the rules again on a port that was set up anew with this many receive queues.
    #[cfg_attr(not(dpdk), expect(dead_code, reason = "ports exist only with DPDK"))]
    pub(crate) fn resume(&mut self, port: &Port, queues: u16) -> Result<(), String> {
        for InstalledRule { rule, flow, .. } in &mut self.rules {
            if flow.is_none() {
                *flow = Some(create(port, queues, rule)?);
            }
        }
        Ok(())
    }
}

/// Creates a rule on a running port.
fn create(port: &Port, queues: u16, rule: &FlowRule) -> Result<Flow, String> {
    if let Some(queue) = rule.queues().find(|queue| *queue >= queues) {
        return Err(format!("the port has no queue {queue}: {queues} queues, from 0"));
    }
    port.create_flow(rule, queues).map_err(|why| {
        let driver = port.info().map_or_else(|_| String::new(), |info| info.driver());
        format!("its driver {driver} refuses `{}`: {why}", rule.text)
    })
}
