//! Rewrites packets: sets fields, edits TCP options.

mod fields;
mod options;
mod plan;

pub use fields::set;
pub(crate) use fields::{FieldBits, put};
pub use options::OptionList;
pub use plan::{NatChange, NatField, OptionEdit, RulePlan};

use crate::headers::Headers;
use castanet_packet::Packet;

/// A packet that is being rewritten. Edits of TCP options are collected until
/// [`PacketRewriter::finish`], so that the payload moves once.
pub struct PacketRewriter<'p> {
    /// The packet.
    pub packet: &'p mut Packet,
    /// Its header offsets.
    pub headers: Headers,
    options: Option<OptionList>,
    mtu: usize,
}

impl<'p> PacketRewriter<'p> {
    /// Creates a rewriter; options do not make the packet longer than `mtu`.
    pub fn new(packet: &'p mut Packet, headers: Headers, mtu: usize) -> PacketRewriter<'p> {
        PacketRewriter { packet, headers, options: None, mtu }
    }

    /// Applies the field and option changes of a plan, but not its NAT changes. Returns the number
    /// of options for which there was no room.
    pub fn apply(&mut self, plan: &RulePlan) -> usize {
        for (field, value) in &plan.fields {
            set(self.packet.bytes_mut(), &self.headers, *field, value);
        }
        plan.options.iter().filter(|edit| !self.edit(edit)).count()
    }

    /// Shifts the sequence numbers of selective acknowledgments.
    pub(crate) fn shift_sack(&mut self, by: u32) {
        match &mut self.options {
            Some(list) => list.shift_sack(by),
            None => fields::shift_sack(self.packet.bytes_mut(), &self.headers, by),
        }
    }

    /// Edits the options; whether there was room.
    fn edit(&mut self, edit: &OptionEdit) -> bool {
        if self.options.is_none() {
            self.options = OptionList::read(self.packet.bytes(), &self.headers, self.mtu);
        }
        // Without a whole TCP header there is nothing to edit.
        self.options.as_mut().is_none_or(|list| list.edit(edit))
    }

    /// Writes changed options into the packet.
    pub fn finish(mut self) {
        if let Some(list) = self.options.take() {
            list.write(self.packet, &mut self.headers);
        }
    }
}
