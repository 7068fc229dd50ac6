//! Translation of packets, under shared or exclusive access to the table.

use super::mapping::{Datagram, is_tcp, round_to_ms};
use super::{
    ChoiceContext, InputSpec, Mapping, Member, NewFlow, PacketInfo, Refusal, RewriterKind, Table,
    Translation,
};
use crate::conntrack::{ExclusiveAccess, Id, Tuple4, rewrite_tuple};
use castanet_wire::Ipv4Header;

impl Table {
    /// Translates a packet of a member under shared access. A packet that opens or ends a mapping,
    /// or whose sequence numbers are shifted, needs [`Table::translate`]: for it the result is
    /// [`ExclusiveAccess`].
    pub fn translate_shared(
        &self,
        zone: u16,
        packet: PacketInfo,
        datagram: &mut [u8],
    ) -> Result<Result<Translation, Refusal>, ExclusiveAccess> {
        let flows = &self.flows;
        let member = self.members.get(usize::from(zone)).ok_or(ExclusiveAccess)?;
        let Some((id, back)) = self.find_mapping(member, zone, &packet, datagram) else {
            let input = member.config.inputs.get(packet.input);
            let is_plain = matches!(input, None | Some(InputSpec::Drop | InputSpec::Pass(_)));
            return match packet.may_open && !is_plain {
                true => Err(ExclusiveAccess),
                false => Ok(self.translate_unmapped(zone, packet.input)),
            };
        };
        let flow = flows.flow(id);
        let (key, mapping) = (flow.key(), flow.data());
        if flow.deadline() <= packet.now || mapping.is_shifted() {
            return Err(ExclusiveAccess);
        }
        let is_tcp = is_tcp(member.config.kind, key.proto());
        let timeouts = member.config.timeouts(is_tcp);
        let Some(mut parts) = Datagram::parse(datagram) else { return Err(ExclusiveAccess) };
        let back = mapping.is_reply(back);
        let timeout = mapping.update_state(back, is_tcp, &parts, timeouts, false)?;
        flow.postpone(round_to_ms(packet.now).saturating_add(timeout))?;
        Ok(Ok(rewrite(member.config.kind, key, mapping, back, &mut parts)))
    }

    /// The mapping of a packet, and whether the packet is a reply.
    #[inline]
    fn find_mapping(
        &self,
        member: &Member,
        zone: u16,
        packet: &PacketInfo,
        datagram: &[u8],
    ) -> Option<(Id, bool)> {
        packet.slot.entry().or_else(|| {
            let (ip, _) = Ipv4Header::from_prefix(datagram)?;
            self.flows.find(&member.config.kind.second_key(ip.dst())?.in_zone(zone))
        })
    }

    /// Translates a packet of a member under exclusive access. A mapping is opened if there is none
    /// and the packet's input has a pattern.
    pub fn translate(
        &mut self,
        zone: u16,
        packet: PacketInfo,
        datagram: &mut [u8],
        context: &mut ChoiceContext,
    ) -> Result<Translation, Refusal> {
        let member = self.members.get(usize::from(zone)).ok_or(Refusal::Unmapped)?;
        let found = self.find_mapping(member, zone, &packet, datagram);
        let found = found.filter(|(id, _)| !self.remove_if_expired(*id, packet.now));
        let (id, back) = match found {
            Some((id, back)) => (id, self.flows.get(id).is_reply(back)),
            None if !packet.may_open => return self.translate_unmapped(zone, packet.input),
            None => {
                let flow = packet.key.in_zone(0);
                match self.open_mapping(zone, packet.input, flow, packet.now, context)? {
                    NewFlow::Passed(output) => return Ok(Translation::Untouched(output)),
                    NewFlow::Mapped(id) => {
                        self.flows.get_mut(id).anno = packet.anno;
                        (id, false)
                    }
                }
            }
        };
        Ok(self.apply(zone, id, back, packet.now, datagram))
    }

    /// The result for a packet that has no mapping and opens none.
    pub fn translate_unmapped(&self, zone: u16, input: usize) -> Result<Translation, Refusal> {
        let member = self.members.get(usize::from(zone));
        match member.and_then(|member| member.config.inputs.get(input)) {
            Some(InputSpec::Pass(output)) => Ok(Translation::Untouched(*output)),
            _ => Err(Refusal::Unmapped),
        }
    }

    fn apply(
        &mut self,
        zone: u16,
        id: Id,
        back: bool,
        now: u64,
        datagram: &mut [u8],
    ) -> Translation {
        let config = &self.members[usize::from(zone)].config;
        let Some(mut parts) = Datagram::parse(datagram) else {
            return Translation::Untouched(0);
        };
        let (key, mapping) = (self.flows.key(id), self.flows.get(id));
        let is_tcp = is_tcp(config.kind, key.proto());
        let timeouts = config.timeouts(is_tcp);
        let Ok(timeout) = mapping.update_state(back, is_tcp, &parts, timeouts, true) else {
            return Translation::Untouched(0);
        };
        let translation = rewrite(config.kind, key, mapping, back, &mut parts);
        let until = round_to_ms(now).saturating_add(timeout);
        self.flows.set_deadline(id, until).shift_numbers(back, &mut parts);
        self.eviction.refresh(&mut self.flows, id, now);
        translation
    }
}

/// Rewrites a packet as its mapping says, except for sequence numbers.
fn rewrite(
    kind: RewriterKind,
    key: &Tuple4,
    mapping: &Mapping,
    back: bool,
    packet: &mut Datagram,
) -> Translation {
    let (from, to) = (mapping.tuple(key, back), mapping.target(key, back));
    if from != to {
        rewrite_tuple(packet.bytes, packet.at, &from, &to);
    }
    mapping.translation(kind, back, &to)
}
