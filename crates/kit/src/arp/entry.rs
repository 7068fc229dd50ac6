//! Entries of the table, and the lists that they are in.

use super::SECOND;
use std::collections::VecDeque;

/// The minimum gap between two queries for one address, and the gap after ten queries without
/// reply.
const POLL_GAP: u64 = SECOND / 10;
const POLL_GAP_SLOW: u64 = 2 * SECOND;
const FAST_POLLS: u8 = 10;

#[derive(Debug)]
pub(super) struct Entry<P, A> {
    pub(super) ip: A,
    pub(super) ether: [u8; 6],
    pub(super) known: bool,
    /// Queries since the last reply.
    pub(super) polls: u8,
    pub(super) live_at: u64,
    pub(super) polled_at: Option<u64>,
    pub(super) queued: VecDeque<P>,
    /// The time at which the first of the queued packets came.
    pub(super) queued_since: u64,
    /// The links in the list by age, and in the list of entries with queued packets.
    pub(super) links: [Links; 2],
}

/// The previous and the next entry, or the last and the first of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    pub(super) previous: u32,
    pub(super) next: u32,
}

/// No entry.
pub(super) const NIL: u32 = u32::MAX;
pub(super) const NONE: Links = Links { previous: NIL, next: NIL };

/// The lists of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Entries whose address is known or has expired, by `live_at`.
    Known,
    /// Entries without an address, by `live_at`.
    Unknown,
    /// Entries with queued packets, by `queued_since`.
    Queued,
}

impl List {
    /// The list by age that an entry is in.
    pub(super) fn of_age(known: bool) -> List {
        if known { List::Known } else { List::Unknown }
    }

    /// The index of the list's links in an entry.
    pub(super) fn links(self) -> usize {
        usize::from(self == List::Queued)
    }
}

impl<P, A> Entry<P, A> {
    pub(super) fn expired(&self, now: u64, timeout: u64) -> bool {
        timeout != 0 && now > self.live_at.saturating_add(timeout)
    }

    /// Whether to query for it again: no reply came for `poll` nanoseconds (0 for never).
    pub(super) fn is_to_poll(&self, now: u64, poll: u64) -> bool {
        poll != 0 && now >= self.live_at.saturating_add(poll) && self.may_poll(now)
    }

    pub(super) fn may_poll(&self, now: u64) -> bool {
        let gap = if self.polls >= FAST_POLLS { POLL_GAP_SLOW } else { POLL_GAP };
        self.polled_at.is_none_or(|polled| now >= polled.saturating_add(gap))
    }

    pub(super) fn mark_poll(&mut self, now: u64) {
        self.polled_at = Some(now);
        self.polls = self.polls.saturating_add(1);
    }
}
