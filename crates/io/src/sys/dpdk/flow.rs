//! Flow rules of ports, which DPDK's drivers give to the cards.

use super::port::Port;
use super::shim;
use super::types::text;
use castanet_kit::flow_rules::{Action, FlowRule};
use std::ffi::{c_char, c_void};

/// An item of a pattern, laid out as in `flow.c`.
#[repr(C)]
pub(super) struct RawItem {
    kind: u32,
    len: u32,
    spec: *const u8,
    last: *const u8,
    mask: *const u8,
}

/// An action, laid out as in `flow.c`.
#[repr(C)]
pub(super) struct RawAction {
    kind: u32,
    value: u32,
    function: u32,
    level: u32,
    types: u64,
    queues: *const u16,
    queue_count: u32,
    reserved: u32,
}

/// A rule, laid out as in `flow.c`.
#[repr(C)]
pub(super) struct RawRule {
    group: u32,
    priority: u32,
    directions: u32,
    item_count: u32,
    action_count: u32,
    reserved: u32,
    items: *const RawItem,
    actions: *const RawAction,
}

/// A rule that a driver has accepted.
#[derive(Debug)]
pub(crate) struct Flow(*mut c_void);

// SAFETY: the pointer is a name for DPDK's functions, which any thread may call; the port's lock
// keeps calls apart.
unsafe impl Send for Flow {}

/// Room for a driver's reason.
type Reason = [c_char; 160];

/// The result of a call that may have written a reason.
fn answer(failed: i32, why: &Reason) -> Result<(), String> {
    if failed == 0 { Ok(()) } else { Err(text(why)) }
}

/// An action for C; an RSS action without queues gets `all`.
fn raw_action(action: &Action, all: &[u16]) -> RawAction {
    let (kind, value) = match action {
        Action::Void => (0, 0),
        Action::Passthru => (1, 0),
        Action::Flag => (2, 0),
        Action::Drop => (3, 0),
        Action::Count(counter) => (4, *counter),
        Action::Jump(group) => (5, *group),
        Action::Mark(id) => (6, *id),
        Action::Queue(index) => (7, (*index).into()),
        Action::PortId(id) => (8, *id),
        Action::Rss(_) => (9, 0),
        Action::OfPopVlan => (10, 0),
        Action::DecTtl => (11, 0),
        Action::MacSwap => (12, 0),
        Action::VxlanDecap => (13, 0),
    };
    let (queues, count) = (std::ptr::null(), 0);
    let mut raw = RawAction {
        kind,
        value,
        function: 0,
        level: 0,
        types: 0,
        queues,
        queue_count: count,
        reserved: 0,
    };
    if let Action::Rss(rss) = action {
        let queues = if rss.queues.is_empty() { all } else { &rss.queues };
        (raw.function, raw.level, raw.types) = (rss.function, rss.level, rss.types);
        (raw.queues, raw.queue_count) = (queues.as_ptr(), queues.len() as u32);
    }
    raw
}

impl Port {
    /// Creates a rule on the running port, which has this many receive queues.
    pub(crate) fn create_flow(&self, rule: &FlowRule, queues: u16) -> Result<Flow, String> {
        let all: Vec<u16> = (0..queues).collect();
        let pointer = |values: &Option<Vec<u8>>| {
            values.as_ref().map_or(std::ptr::null(), |values| values.as_ptr())
        };
        let items = rule.pattern.iter().map(|item| RawItem {
            kind: item.kind as u32,
            len: item.spec.as_ref().map_or(0, Vec::len) as u32,
            spec: pointer(&item.spec),
            last: pointer(&item.last),
            mask: pointer(&item.mask),
        });
        let items: Vec<_> = items.collect();
        let actions: Vec<_> = rule.actions.iter().map(|it| raw_action(it, &all)).collect();
        let bit = |set: bool, bit: u32| u32::from(set) << bit;
        let raw = RawRule {
            group: rule.group,
            priority: rule.priority,
            directions: bit(rule.ingress, 0) | bit(rule.egress, 1) | bit(rule.transfer, 2),
            item_count: items.len() as u32,
            action_count: actions.len() as u32,
            reserved: 0,
            items: items.as_ptr(),
            actions: actions.as_ptr(),
        };
        let (mut flow, mut why) = (std::ptr::null_mut(), [0; 160]);
        // SAFETY: the rule and all that it points to are live; its values have the lengths of
        // their headers, which a test compares with those of C. There is room for the reason.
        let failed = unsafe {
            shim::castanet_dpdk_flow_create(
                self.number(),
                &raw const raw,
                &raw mut flow,
                why.as_mut_ptr(),
                why.len(),
            )
        };
        answer(failed, &why).map(|()| Flow(flow))
    }

    /// Removes a rule.
    pub(crate) fn destroy_flow(&self, flow: &Flow) -> Result<(), String> {
        let mut why = [0; 160];
        // SAFETY: the driver has made the flow, and its owner forgets it after this call.
        let failed = unsafe {
            let (to, room) = (why.as_mut_ptr(), why.len());
            shim::castanet_dpdk_flow_destroy(self.number(), flow.0, to, room)
        };
        answer(failed, &why)
    }

    /// Packets and bytes that a rule's counter has counted.
    pub(crate) fn flow_counts(&self, flow: &Flow, counter: u32) -> Result<(u64, u64), String> {
        let (mut packets, mut bytes, mut why) = (0, 0, [0; 160]);
        // SAFETY: the driver has made the flow; all other pointers are live.
        let failed = unsafe {
            shim::castanet_dpdk_flow_count(
                self.number(),
                flow.0,
                counter,
                &raw mut packets,
                &raw mut bytes,
                why.as_mut_ptr(),
                why.len(),
            )
        };
        answer(failed, &why).map(|()| (packets, bytes))
    }

    /// Makes the port receive only the packets that its rules assign to queues, or all again.
    pub(crate) fn isolate(&self, on: bool) -> Result<(), String> {
        let mut why = [0; 160];
        // SAFETY: there is room for the reason.
        let failed = unsafe {
            let (to, room) = (why.as_mut_ptr(), why.len());
            shim::castanet_dpdk_flow_isolate(self.number(), on, to, room)
        };
        answer(failed, &why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_kit::flow_rules::ITEMS;

    #[test]
    fn both_tables_of_items_agree() {
        for (kind, item) in ITEMS.iter().enumerate() {
            // SAFETY: only looks into a table.
            let len = unsafe { shim::castanet_dpdk_flow_header(kind as u32) };
            assert_eq!(usize::try_from(len), Ok(item.len), "{}", item.name);
        }
        // SAFETY: as above.
        assert_eq!(unsafe { shim::castanet_dpdk_flow_header(ITEMS.len() as u32) }, -1);
    }
}
