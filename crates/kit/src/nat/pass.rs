//! What becomes of packets: by those who share a table and read it, or by who has it to himself.

use super::mapping::{Parts, Rewrite, is_tcp, whole};
use super::{Arrival, By, Input, Mapping, Member, Opened, Passed, Refusal, Table};
use crate::flow::{Id, Tuple4, Wait};

impl Table {
    /// Rewrites a packet of a member as its mapping says, or says what else becomes of it; by
    /// one of several who read the table at the same time. One that begins or ends a mapping, or
    /// whose numbers are shifted, waits for [`Table::pass`].
    pub fn pass_early(
        &self,
        zone: u16,
        packet: Arrival,
        datagram: &mut [u8],
    ) -> Result<Result<Passed, Refusal>, Wait> {
        let (Some(member), Some(flows)) = (self.members.get(usize::from(zone)), &self.flows) else {
            return Err(Wait);
        };
        let Some((id, back)) = self.mapped(member, zone, &packet, datagram) else {
            let input = member.rules.inputs.get(packet.input);
            let is_plain = matches!(input, None | Some(Input::Drop | Input::Pass(_)));
            return match packet.begins && !is_plain {
                true => Err(Wait),
                false => Ok(self.unmapped(zone, packet.input)),
            };
        };
        let (key, mapping) = (flows.key(id), flows.get(id));
        if flows.ends(id) <= packet.now || mapping.is_shifted() {
            return Err(Wait);
        }
        let is_tcp = is_tcp(member.rules.by, key.proto());
        let lives = member.rules.lives(is_tcp);
        let Some(mut parts) = Parts::of(datagram) else { return Err(Wait) };
        let back = mapping.is_reply(back);
        let life = mapping.note(back, is_tcp, &parts, lives, false)?;
        flows.put_off(id, whole(packet.now).saturating_add(life))?;
        Ok(Ok(rewritten(member.rules.by, key, mapping, back, &mut parts)))
    }

    /// The mapping of a packet, and whether it is a reply.
    #[inline]
    fn mapped(
        &self,
        member: &Member,
        zone: u16,
        packet: &Arrival,
        datagram: &[u8],
    ) -> Option<(Id, bool)> {
        packet.found.found().or_else(|| self.find(&member.rules.by.other_key(datagram, zone)?))
    }

    /// Rewrites a packet of a member as its mapping says, which is made if there is none; or
    /// says what else becomes of it.
    pub fn pass(
        &mut self,
        zone: u16,
        packet: Arrival,
        datagram: &mut [u8],
        random: &mut dyn FnMut() -> u64,
    ) -> Result<Passed, Refusal> {
        let member = self.members.get(usize::from(zone)).ok_or(Refusal::Unmapped)?;
        let found = self.mapped(member, zone, &packet, datagram);
        let found = found.filter(|(id, _)| !self.is_overdue(*id, packet.now));
        let (id, back) = match found {
            Some((id, back)) => {
                (id, self.flows.as_ref().map_or(back, |it| it.get(id).is_reply(back)))
            }
            None if !packet.begins => return self.unmapped(zone, packet.input),
            None => {
                let flow = packet.key.in_zone(0);
                match self.open(zone, packet.input, flow, packet.now, random)? {
                    Opened::Passes(output) => return Ok(Passed::Untouched(output)),
                    Opened::As(id) => {
                        self.anno(id, packet.anno);
                        (id, false)
                    }
                }
            }
        };
        Ok(self.apply(zone, id, back, packet.now, datagram))
    }

    /// What becomes of a packet that is rewritten by no mapping, and begins none.
    pub fn unmapped(&self, zone: u16, input: usize) -> Result<Passed, Refusal> {
        let member = self.members.get(usize::from(zone));
        match member.and_then(|member| member.rules.inputs.get(input)) {
            Some(Input::Pass(output)) => Ok(Passed::Untouched(*output)),
            _ => Err(Refusal::Unmapped),
        }
    }

    fn apply(&mut self, zone: u16, id: Id, back: bool, now: u64, datagram: &mut [u8]) -> Passed {
        let rules = &self.members[usize::from(zone)].rules;
        let (Some(flows), Some(mut parts)) = (&self.flows, Parts::of(datagram)) else {
            return Passed::Untouched(0);
        };
        let (key, mapping) = (flows.key(id), flows.get(id));
        let is_tcp = is_tcp(rules.by, key.proto());
        let lives = rules.lives(is_tcp);
        let Ok(life) = mapping.note(back, is_tcp, &parts, lives, true) else {
            return Passed::Untouched(0);
        };
        let passed = rewritten(rules.by, key, mapping, back, &mut parts);
        if let Some(flows) = &mut self.flows {
            flows.keep(id, whole(now).saturating_add(life)).shift(back, &mut parts);
            self.order.review(flows, id, now);
        }
        passed
    }
}

/// Rewrites a packet as its mapping says, but for sequence numbers.
fn rewritten(by: By, key: &Tuple4, mapping: &Mapping, back: bool, parts: &mut Parts) -> Passed {
    let reply = mapping.back.unwrap_or(*key);
    let new = if back { *key } else { reply }.reversed();
    let (src, dst) = match (by, back) {
        (By::Source, false) => (Some(new.src().0), None),
        (By::Source, true) => (None, Some(new.dst().0)),
        _ => (Some(new.src().0), Some(new.dst().0)),
    };
    let ports = match (by, back) {
        (By::Echo, true) => (new.dst().1, 0),
        _ => (new.src().1, new.dst().1),
    };
    let changes = reply != key.reversed();
    mapping.rewrite(by, Rewrite { back, changes, src, dst, ports }, parts);
    let output = mapping.outputs[usize::from(back)];
    Passed::Rewritten { output, dst, anno: back.then_some(mapping.anno) }
}
