//! Handlers of a DPDK port's flow rules, with FastClick's names.

use crate::dpdk::{PortRules, read_flow_rules};
use castanet_element::prelude::*;
use castanet_kit::flow_rules::FlowRule;

/// The rules of a file; none without one.
pub(super) fn read(path: Option<&str>) -> Result<Vec<FlowRule>, ArgError> {
    let rules = path.map_or(Ok(Vec::new()), read_flow_rules);
    rules.map_err(|error| ArgError::new(error.to_string()).at("FLOW_RULES_FILE"))
}

/// The flow rules of the port of `FromDPDKDevice`; empty but for the worker that leads.
#[derive(Default)]
pub(super) struct FlowRules {
    port: Option<PortRules>,
    /// Numbers of the rules that the element has created.
    own: Vec<u32>,
}

impl FlowRules {
    /// Creates rules on a port that runs.
    pub(super) fn start(&mut self, port: PortRules, rules: &[FlowRule]) -> Result<(), ArgError> {
        for rule in rules {
            let id = port.add(rule.clone()).map_err(|error| ArgError::new(error.to_string()))?;
            self.own.push(id);
        }
        self.port = Some(port);
        Ok(())
    }

    /// Removes the element's rules.
    pub(super) fn end(&mut self) {
        if let Some(port) = self.port.take() {
            // A rule that the driver does not remove now ends with the port.
            self.own.drain(..).rev().for_each(|id| drop(port.remove(id)));
        }
    }

    fn remove(&mut self, id: u32) -> Result<(), ArgError> {
        let Some(port) = &self.port else { return Ok(()) };
        port.remove(id).map_err(|error| ArgError::new(error.to_string()))?;
        self.own.retain(|own| *own != id);
        Ok(())
    }

    fn ids(&self) -> Vec<u32> {
        self.port.as_ref().map(PortRules::ids).unwrap_or_default()
    }

    /// The counter of a rule, as text: -1 if the rule does not count.
    fn counted(&self, ask: &ReadRequest, of: fn((u64, u64)) -> u64) -> String {
        let Some(port) = &self.port else { return String::new() };
        let counts = ask.param.trim().parse().ok().and_then(|id| port.counts(id));
        counts.map_or_else(|| "-1".to_owned(), |counts| of(counts).to_string())
    }
}

#[handlers]
impl FlowRules {
    /// Creates a flow rule, in the syntax of FLOW_RULES_FILE.
    #[write]
    fn rule_add(&mut self, text: &str) -> Result<(), ArgError> {
        let rule = FlowRule::parse(text).map_err(ArgError::new)?;
        let Some(port) = &self.port else { return Ok(()) };
        let id = port.add(rule).map_err(|error| ArgError::new(error.to_string()))?;
        self.own.push(id);
        Ok(())
    }

    /// Removes flow rules by their numbers, separated by spaces.
    #[write]
    fn rules_del(&mut self, text: &str) -> Result<(), ArgError> {
        let ids = Vec::<u32>::from_arg(text.trim(), &Names::default())?;
        ids.into_iter().try_for_each(|id| self.remove(id))
    }

    /// Removes all flow rules of the port.
    #[write]
    fn rules_flush(&mut self, _: &str) -> Result<(), ArgError> {
        self.ids().into_iter().rev().try_for_each(|id| self.remove(id))
    }

    /// The port's flow rules, one a line, with what they have counted.
    #[read]
    fn rules_list(&self) -> String {
        self.port.as_ref().map_or_else(String::new, |port| port.list(false))
    }

    /// The port's flow rules that have counted packets, one a line.
    #[read]
    fn rules_list_with_hits(&self) -> String {
        self.port.as_ref().map_or_else(String::new, |port| port.list(true))
    }

    /// Numbers of the port's flow rules.
    #[read]
    fn rules_ids_global(&self) -> String {
        self.ids().iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
    }

    /// The same as `rules_ids_global`.
    #[read]
    fn rules_ids_internal(&self) -> String {
        self.rules_ids_global()
    }

    /// Number of the port's flow rules.
    #[read]
    fn rules_count(&self) -> usize {
        self.ids().len()
    }

    /// Number of the port's flow rules that have counted packets.
    #[read]
    fn rules_count_with_hits(&self) -> usize {
        self.rules_list_with_hits().lines().count()
    }

    /// Packets that have matched the flow rule of this number; -1 if it has no action `count`.
    #[read]
    fn rule_packet_hits(&self, ask: &ReadRequest) -> String {
        self.counted(ask, |(packets, _)| packets)
    }

    /// Bytes that have matched the flow rule of this number; -1 if it has no action `count`.
    #[read]
    fn rule_byte_count(&self, ask: &ReadRequest) -> String {
        self.counted(ask, |(_, bytes)| bytes)
    }

    /// Whether the port receives only what its flow rules assign to queues.
    #[read]
    fn flow_isolate(&self) -> u8 {
        self.port.as_ref().is_some_and(PortRules::is_isolated).into()
    }

    /// Makes the port receive only what its flow rules assign to queues, or all again, until it is
    /// set up anew.
    #[write(flow_isolate)]
    fn set_flow_isolate(&mut self, text: &str) -> Result<(), ArgError> {
        let on = bool::from_arg(text.trim(), &Names::default())?;
        let Some(port) = &self.port else { return Ok(()) };
        port.isolate(on).map_err(|error| ArgError::new(error.to_string()))
    }
}
