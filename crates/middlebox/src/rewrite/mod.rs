//! What becomes of a packet: fields that are set, options that come and go.

mod fields;
mod options;
mod plan;

pub use fields::set;
pub(crate) use fields::{Spot, put};
pub use options::OptionList;
pub use plan::{End, OptionEdit, Plan, Turn};

use crate::headers::Headers;
use castanet_packet::Packet;
use castanet_wire::checksum::Delta;

/// A packet while rules change it. The changes of TCP options gather until
/// [`Rewriting::finish`], so that a payload moves once.
pub struct Rewriting<'p> {
    /// The packet.
    pub packet: &'p mut Packet,
    /// Where its headers are.
    pub headers: Headers,
    options: Option<OptionList>,
    mtu: usize,
}

impl<'p> Rewriting<'p> {
    /// Begins; what comes out is no longer than `mtu`, unless it went in so.
    pub fn new(packet: &'p mut Packet, headers: Headers, mtu: usize) -> Rewriting<'p> {
        Rewriting { packet, headers, options: None, mtu }
    }

    /// Does what a rule's plan says of fields and options; connections are
    /// another's business. How many options found no room.
    pub fn follow(&mut self, plan: &Plan) -> usize {
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

    /// Mends the checksum of what the packet carries.
    pub(crate) fn mend_upper(&mut self, delta: Delta) {
        fields::mend_upper(self.packet.bytes_mut(), &self.headers, false, delta);
    }

    /// Edits the options; whether there was room.
    fn edit(&mut self, edit: &OptionEdit) -> bool {
        if self.options.is_none() {
            self.options = OptionList::read(self.packet.bytes(), &self.headers, self.mtu);
        }
        // Without a whole TCP header there is nothing to edit.
        self.options.as_mut().is_none_or(|list| list.edit(edit))
    }

    /// Puts changed options into the packet.
    pub fn finish(mut self) {
        if let Some(list) = self.options.take() {
            list.write(self.packet, &mut self.headers);
        }
    }
}
