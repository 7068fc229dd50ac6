//! The elements of one worker.

use super::chain::FusedChain;
use super::transfer::limits::{Deadline, MAX_HOPS};
use super::ways::BypassWays;
use crate::graph::target::Target;
use crate::graph::task::TaskRef;
use castanet_element::class::Role;
use castanet_element::exec::{ChainExit, HandlerCall};
use castanet_element::node::fused::StagePlace;
use castanet_element::node::{Node, PushRole, RoleNode, StoreRole, ThroughRole};
use castanet_packet::Batch;

/// One element among the others of a worker.
// Whole pairs of cache lines: no two workers may share one.
#[repr(align(128))]
pub struct Slot {
    /// The node; `None` while it produces, where the element has none, and where a chain has it
    /// ([`at`], [`at_mut`]).
    pub(crate) node: Option<RoleNode>,
    /// The chain that begins with it.
    pub(crate) chain: Option<Box<FusedChain>>,
    /// The first element of the chain that has the node, and its place there.
    pub(crate) within: Option<(usize, StagePlace)>,
    /// Its role.
    pub role: Role,
    /// Where each output pushes; `None` for pull outputs and open ones.
    pub outputs: Vec<Option<Target>>,
    /// The output whose packets go on first.
    pub first_output: u8,
    /// The ways of packets that it may hand to other elements by
    /// [`Cx::bypass`](castanet_element::cx::Cx::bypass).
    pub(crate) bypass: Option<Box<BypassWays>>,
    /// Where each pull input pulls; `None` for push inputs.
    pub upstream: Vec<Option<Target>>,
    /// Tasks to wake when packets come to rest here.
    pub waiters: Vec<TaskRef>,
    /// Tasks that pull through here, to wake after a handler write.
    pub pullers: Vec<TaskRef>,
    /// Tasks to wake when packets are taken out of here.
    pub feeders: Vec<TaskRef>,
    /// For a task that pushes: stores in which all its packets come to rest.
    pub stores: Vec<usize>,
    /// Stores whose lengths it watches.
    pub watched: Vec<usize>,
    /// Whether packets come here, or its task sends them, one at a time.
    pub single: bool,
    /// Whether its task handles one packet in a turn.
    pub one_a_turn: bool,
    /// Whether its program decides by which output packets leave.
    pub decides: bool,
    /// Whether a capture is about its packets.
    pub captured: bool,
    /// Whether the elements of its chain run one by one, because a capture is about one of them.
    pub apart: bool,
}

impl Slot {
    /// Whether the elements of its chain run one by one. A handler may have given one of them a call:
    /// then the first is single, too.
    #[inline(always)]
    pub(crate) fn is_apart(&self) -> bool {
        self.single | self.apart
    }
}

/// The node of element `me`, in its slot or in a chain.
pub(crate) fn at(slots: &[Slot], me: usize) -> Option<&dyn Node> {
    match slots[me].within {
        None => slots[me].node.as_ref().map(RoleNode::node),
        Some((head, place)) => Some(slots[head].chain.as_ref()?.fused.peek(place)?),
    }
}

/// The node of element `me`, to change.
pub(crate) fn at_mut(slots: &mut [Slot], me: usize) -> Option<&mut dyn Node> {
    match slots[me].within {
        None => slots[me].node.as_mut().map(RoleNode::node_mut),
        Some(within) => Some(in_chain_mut(slots, within)?),
    }
}

/// The node of element `me`, if packets pass through it.
pub(crate) fn through_at(slots: &[Slot], me: usize) -> Option<&dyn ThroughRole> {
    match slots[me].within {
        None => slots[me].node.as_ref()?.through(),
        Some((head, place)) => slots[head].chain.as_ref()?.fused.peek(place),
    }
}

/// The same, to run.
pub(crate) fn through_at_mut(slots: &mut [Slot], me: usize) -> Option<&mut dyn ThroughRole> {
    match slots[me].within {
        None => slots[me].node.as_mut()?.through_mut(),
        Some(within) => Some(in_chain_mut(slots, within)?),
    }
}

/// The node of element `me`, if packets are pushed into it.
#[inline]
pub(crate) fn push_at_mut(slots: &mut [Slot], me: usize) -> Option<&mut dyn PushRole> {
    match slots[me].within {
        None => slots[me].node.as_mut()?.push_mut(),
        Some(within) => Some(in_chain_mut(slots, within)?),
    }
}

/// The node at a place of the chain that begins with element `head`.
#[inline]
fn in_chain_mut(
    slots: &mut [Slot],
    (head, place): (usize, StagePlace),
) -> Option<&mut (dyn ThroughRole + 'static)> {
    slots[head].chain.as_mut()?.fused.node(place)
}

/// The elements of one worker, and the batches in transfer between them.
pub struct WorkerGraph {
    /// By element: its slot.
    pub(crate) slots: Vec<Slot>,
    /// Batches that wait to be pushed, the next one last.
    pub(crate) stack: Vec<PendingBatch>,
    /// Calls of elements that were pulled, to be made when the pull is over.
    pub(crate) pulled: Vec<PendingBatch>,
    /// Elements that the present burst has visited.
    pub(crate) hops: u32,
    /// Elements that it may visit, until the next look at the time if there is a deadline. With fewer than
    /// `MAX_HOPS`, it is cut there.
    pub(crate) most_hops: u32,
    /// When the present run is cut.
    pub(in crate::worker) deadline: Option<Deadline>,
    /// Whether it was cut: its batches wait on the stack.
    pub(crate) is_cut: bool,
    /// Packets that the present task has taken out of stores or pulled.
    pub(crate) progress: u64,
    /// Whether the last pull has left nothing that could be pulled by the same way.
    pub(crate) is_drained: bool,
    /// The most packets that a pull may bring.
    pub(crate) most: usize,
    /// Packets that left a fused chain before its end, while they are grouped by where they go.
    pub(crate) exit_groups: Vec<(ChainExit, Batch)>,
    /// Tasks to be woken after the present call.
    pub(crate) woken: Vec<TaskRef>,
    /// Whether traces or captures look at packets, so that none goes past an element.
    pub(crate) sees_all: bool,
}

impl WorkerGraph {
    /// The node of element `me`, if packets rest in it.
    pub(crate) fn store(&self, me: usize) -> Option<&dyn StoreRole> {
        self.slots[me].node.as_ref()?.store()
    }

    /// The nodes of these stores.
    pub(crate) fn stores(&self, stores: &[usize]) -> impl Iterator<Item = &dyn StoreRole> {
        stores.iter().filter_map(|&store| self.store(store))
    }

    /// Whether a pull from an output of element `me` may bring packets: what Click's notifiers say.
    pub(crate) fn may_bring(&self, me: usize, port: usize) -> bool {
        self.may_bring_within(me, port, self.slots.len())
    }

    /// The same, with at most so many elements on the way.
    fn may_bring_within(&self, me: usize, port: usize, most: usize) -> bool {
        let upstream = &self.slots[me].upstream;
        let input = |input: &Option<Target>| {
            input.is_some_and(|from| {
                most > 0 && self.may_bring_within(from.node, from.port, most - 1)
            })
        };
        match (self.slots[me].role, &self.slots[me].node) {
            (Role::Source | Role::Duplex, Some(node)) if upstream.iter().all(Option::is_none) => {
                node.is_active()
            }
            (Role::Through, Some(node)) if self.slots[me].decides && node.node().held() > 0 => true,
            (Role::Through, _) => {
                let chosen = through_at(&self.slots, me).and_then(|node| node.pull_input(port));
                let last = upstream.len().saturating_sub(1);
                chosen.is_some_and(|it| upstream.get(it.min(last)).is_some_and(input))
            }
            (_, node) => {
                node.as_ref().is_some_and(|it| it.node().held() > 0) || upstream.iter().any(input)
            }
        }
    }

    pub(crate) fn new(slots: Vec<Slot>) -> WorkerGraph {
        WorkerGraph {
            slots,
            stack: Vec::new(),
            pulled: Vec::new(),
            hops: 0,
            most_hops: MAX_HOPS,
            deadline: None,
            is_cut: false,
            progress: 0,
            is_drained: false,
            most: usize::MAX,
            exit_groups: Vec::new(),
            woken: Vec::new(),
            sees_all: false,
        }
    }
}

/// A batch on its way to an element.
pub(crate) struct PendingBatch {
    pub(crate) node: usize,
    pub(crate) port: usize,
    /// Elements that the batch has visited since it was emitted by a task.
    pub(crate) depth: u32,
    pub(crate) batch: Batch,
    /// Whether it is for this element alone, not for the chain that begins with it.
    pub(crate) alone: bool,
    /// A call of this element, to be made before its packets and those below go on.
    pub(crate) call: Option<Box<HandlerCall>>,
}

impl PendingBatch {
    /// Packets on their way to an input.
    #[inline]
    pub(crate) fn new(node: usize, port: usize, depth: u32, batch: Batch) -> PendingBatch {
        PendingBatch { node, port, depth, batch, alone: false, call: None }
    }
}
