//! Nodes by the role of their elements in the graph.

use super::Node;
use crate::cx::Cx;
use crate::element::NextRun;
use crate::exec::Next;
use crate::time::Time;
use castanet_packet::{Batch, BurstBytes, BurstSummary, PacketTotals};

/// An element into which packets are pushed. It is the first supertrait of all roles that have inputs,
/// so that a node of any of them is one by the same virtual table.
pub trait PushRole: Node {
    /// Takes a batch on input `port`. The packets that it leaves in `batch` leave by the output that it
    /// answers; it emits or keeps all others.
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> Next;
}

/// An element through which packets pass, or in which they end.
pub trait ThroughRole: PushRole {
    /// The input to pull for output `output`; `None` where nothing is to be pulled.
    fn pull_input(&self, output: usize) -> Option<usize> {
        Some(output)
    }
    /// As [`PerBatch::emit_decided`](crate::element::PerBatch::emit_decided).
    fn emit_decided(&mut self, _n: usize, _cx: &mut Cx) {}
    /// Whether its task pulls its inputs.
    fn is_pulling(&self) -> bool {
        true
    }
    /// As [`Source::packets_a_turn`](crate::element::Source::packets_a_turn), of the task that pulls.
    fn packets_a_turn(&self) -> usize {
        1
    }
    /// Whether packets may be handed past it now ([`PerBatch::counts_only`](crate::element::PerBatch::counts_only)).
    fn counts_only(&self) -> bool {
        false
    }
    /// As [`PerBatch::byte_length`](crate::element::PerBatch::byte_length).
    fn byte_length(&mut self, _now: Time) -> Option<usize> {
        None
    }
    /// As [`PerPacket::handle_bytes`](crate::element::PerPacket::handle_bytes).
    fn handle_bytes(&mut self, _bytes: &mut BurstBytes, _fates: &mut [u8]) -> u8 {
        0
    }
    /// As [`PerPacket::write_bytes`](crate::element::PerPacket::write_bytes).
    fn write_bytes(&mut self, _bytes: &mut BurstBytes) {}
    /// Whether packets of which this is true may be handed past it ([`BurstEffect::Passes`](crate::element::BurstEffect::Passes)).
    fn passes_burst(&self, _burst: &BurstSummary) -> bool {
        false
    }
    /// As [`PerPacket::count_handled`](crate::element::PerPacket::count_handled).
    fn count_handled(&mut self, _packets: usize) {}
    /// Counts packets that were handed past it.
    fn count(&mut self, _totals: PacketTotals, _cx: &mut Cx) {}
    /// The Rust expression for the element as a stage of a fused chain
    /// ([`PerPacket::native`](crate::element::PerPacket::native)).
    fn native(&self) -> Option<String> {
        None
    }
}

/// An element that produces packets: as a task where its output pushes, else when it is pulled.
pub trait SourceRole: Node {
    /// Emits up to `n` packets; says when to run again.
    fn produce(&mut self, n: usize, cx: &mut Cx) -> NextRun;
    /// Whether its task runs at all.
    fn is_active(&self) -> bool;
    /// As [`Source::packets_a_turn`](crate::element::Source::packets_a_turn).
    fn packets_a_turn(&self) -> usize;
}

/// An element in which packets end and that produces others.
pub trait DuplexRole: ThroughRole + SourceRole {}

/// An element in which packets rest.
pub trait StoreRole: PushRole {
    /// Moves up to `n` packets into `into`.
    fn dequeue(&mut self, n: usize, into: &mut Batch, cx: &mut Cx);
    /// Packets that still find room.
    fn room(&self) -> usize;
    /// Whether its task empties it, where its output pushes.
    fn is_active(&self) -> bool;
}

/// A node with the role of its element.
pub enum RoleNode {
    /// Packets pass through it, or end in it.
    Through(Box<dyn ThroughRole>),
    /// It produces packets.
    Source(Box<dyn SourceRole>),
    /// Packets end in it, and it produces others.
    Duplex(Box<dyn DuplexRole>),
    /// Packets rest in it.
    Store(Box<dyn StoreRole>),
}

impl RoleNode {
    /// The node, whatever its role.
    pub fn node(&self) -> &dyn Node {
        match self {
            RoleNode::Through(node) => &**node,
            RoleNode::Source(node) => &**node,
            RoleNode::Duplex(node) => &**node,
            RoleNode::Store(node) => &**node,
        }
    }

    /// The same, to change.
    pub fn node_mut(&mut self) -> &mut dyn Node {
        match self {
            RoleNode::Through(node) => &mut **node,
            RoleNode::Source(node) => &mut **node,
            RoleNode::Duplex(node) => &mut **node,
            RoleNode::Store(node) => &mut **node,
        }
    }

    /// The node as one into which packets are pushed; `None` for a source.
    #[inline]
    pub fn push_mut(&mut self) -> Option<&mut dyn PushRole> {
        match self {
            RoleNode::Through(node) => Some(&mut **node),
            RoleNode::Duplex(node) => Some(&mut **node),
            RoleNode::Store(node) => Some(&mut **node),
            RoleNode::Source(_) => None,
        }
    }

    /// The node as one that produces packets.
    pub fn source_mut(&mut self) -> Option<&mut dyn SourceRole> {
        match self {
            RoleNode::Source(node) => Some(&mut **node),
            RoleNode::Duplex(node) => Some(&mut **node),
            RoleNode::Through(_) | RoleNode::Store(_) => None,
        }
    }

    /// The node as one through which packets pass.
    pub fn through(&self) -> Option<&dyn ThroughRole> {
        match self {
            RoleNode::Through(node) => Some(&**node),
            RoleNode::Duplex(node) => Some(&**node),
            RoleNode::Source(_) | RoleNode::Store(_) => None,
        }
    }

    /// The same, to run.
    pub fn through_mut(&mut self) -> Option<&mut dyn ThroughRole> {
        match self {
            RoleNode::Through(node) => Some(&mut **node),
            RoleNode::Duplex(node) => Some(&mut **node),
            RoleNode::Source(_) | RoleNode::Store(_) => None,
        }
    }

    /// The node as one in which packets rest.
    pub fn store(&self) -> Option<&dyn StoreRole> {
        match self {
            RoleNode::Store(node) => Some(&**node),
            _ => None,
        }
    }

    /// The same, to run.
    pub fn store_mut(&mut self) -> Option<&mut dyn StoreRole> {
        match self {
            RoleNode::Store(node) => Some(&mut **node),
            _ => None,
        }
    }

    /// Packets that a turn of its task handles where turns are Click's.
    pub fn packets_a_turn(&self) -> usize {
        match self {
            RoleNode::Source(node) => node.packets_a_turn(),
            RoleNode::Duplex(node) => SourceRole::packets_a_turn(&**node),
            RoleNode::Through(node) => node.packets_a_turn(),
            RoleNode::Store(_) => 1,
        }
    }

    /// Whether a source produces at all.
    pub fn is_active(&self) -> bool {
        match self {
            RoleNode::Source(node) => node.is_active(),
            RoleNode::Duplex(node) => SourceRole::is_active(&**node),
            RoleNode::Through(_) | RoleNode::Store(_) => false,
        }
    }
}
