//! Runs several elements as one pass over a burst, and keeps their books as
//! if each had been visited.

use super::core::{Core, Hop};
use super::exec::leave_open;
use crate::cx::Cx;
use crate::node::fused::{Leaver, MAX_STAGES, Member};
use crate::node::{PANICKED, Pass, Slot};
use castanet_packet::Batch;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Takes a batch through the pass that begins with `head`, if there is one.
/// What is left in `batch` leaves the element answered by the output answered;
/// what left before waits on the stack or among what was emitted.
#[inline]
pub(crate) fn through(
    slots: &mut [Slot],
    core: &mut Core,
    head: usize,
    depth: u32,
    batch: &mut Batch,
) -> Option<(usize, u8)> {
    let Pass { fused, members } = slots[head].pass.as_deref_mut()?;
    let last = members.last()?.node;
    core.hops += members.len() as u32;
    if core.fates.len() < batch.len() {
        core.fates.resize(batch.len(), 0);
    }
    let mut at = 0;
    let run = || fused.run(members, batch, core, &mut at);
    let (all, any) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(fates) => fates?,
        Err(_) => {
            lose(members, core, at, batch);
            return Some((last, 0));
        }
    };
    if core.leavers.is_empty() {
        keep_books(members, core, batch.len() as u64, &[0; MAX_STAGES]);
    } else {
        part(slots, core, head, depth, batch);
    }
    if all == any && !core.is_drop(all) {
        return Some((last, all));
    }
    Some((last, divide(core, last, batch)))
}

/// Moves what is left where the last stage's fates say.
fn divide(core: &mut Core, last: usize, batch: &mut Batch) -> u8 {
    let fates = std::mem::take(&mut core.fates);
    let keep = Cx { core, me: last, nodes: None }.divide(batch, &fates);
    core.fates = fates;
    keep
}

/// Moves what left on the way: it waits until the rest of the burst has gone on.
fn part(slots: &[Slot], core: &mut Core, head: usize, depth: u32, batch: &mut Batch) {
    let Some(Pass { members, .. }) = slots[head].pass.as_deref() else { return };
    let leavers = std::mem::take(&mut core.leavers);
    let mut left = [0; MAX_STAGES];
    leavers.iter().for_each(|leaver| left[usize::from(leaver.place)] += 1);
    keep_books(members, core, batch.len() as u64, &left);
    let mut groups = std::mem::take(&mut core.leaving);
    let mut order = leavers.iter();
    let places = leavers.iter().map(|leaver| usize::from(leaver.index));
    batch.extract(places, &mut core.fates, |packet| {
        let Some(&leaver) = order.next() else { return };
        let same = |l: &Leaver| (l.place, l.fate) == (leaver.place, leaver.fate);
        match groups.iter_mut().rev().find(|(l, _)| same(l)) {
            Some((_, group)) => group.push(packet),
            None => groups.push((leaver, Batch::from(packet))),
        }
    });
    for (leaver, group) in groups.drain(..).rev() {
        if let Some(&member) = members.iter().find(|m| m.place == leaver.place) {
            send(member, leaver, slots, core, depth, group);
        }
    }
    (core.leavers, core.leaving) = (leavers, groups);
    core.leavers.clear();
}

/// Counts what went in and on; `left` is how many packets each stage kept
/// from the next one. What the last one puts out is counted with where it goes.
fn keep_books(members: &[Member], core: &mut Core, mut count: u64, left: &[u64; MAX_STAGES]) {
    let Some((last, others)) = members.split_last() else { return };
    for member in others {
        let book = &mut core.ledger[member.node];
        book.input += count;
        count -= left[usize::from(member.place)];
        book.output += count;
    }
    core.ledger[last.node].input += count;
}

/// Sends a group of packets from `member` where `leaver` says.
fn send(member: Member, leaver: Leaver, slots: &[Slot], core: &mut Core, depth: u32, batch: Batch) {
    let (me, count) = (member.node, batch.len() as u64);
    let Some(fate) = leaver.fate else {
        // It will be counted as coming in when it comes in.
        core.ledger[me].input -= count;
        return core.stack.push(Hop { alone: true, ..Hop::new(me, member.port, depth, batch) });
    };
    if core.is_drop(fate) {
        return core.count_drops(me, fate, count);
    }
    match slots[me].outputs.get(usize::from(fate)) {
        Some(Some(to)) => {
            core.ledger[me].output += count;
            core.stack.push(Hop::new(to.node, to.port, depth, batch));
        }
        _ => leave_open(core, me, fate, count),
    }
}

/// After a panic of stage `at`: the burst is lost there.
#[cold]
fn lose(members: &[Member], core: &mut Core, at: u8, batch: &mut Batch) {
    let count = batch.len() as u64;
    let reached = &members[..members.partition_point(|member| member.place <= at)];
    keep_books(reached, core, count, &[0; MAX_STAGES]);
    if let Some(member) = reached.last() {
        core.count_drops(member.node, PANICKED, count);
    }
    core.leavers.clear();
    core.panics += 1;
    batch.clear();
}
