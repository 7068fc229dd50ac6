//! Step: the account that pays for each element's processor time and memory (*Data plane
//! virtualisation*, section 3).

use super::{Assignment, said_of};
use crate::graph::{Flow, Graph};
use castanet_element::account::{AccountMemory, CpuAccount, MemoryLimits};
use castanet_element::class::Role;
use castanet_element::element::Facts;
use castanet_kit::cpu_shares::CpuShare;
use castanet_packet::HeapPayment;
use std::sync::Arc;
use std::time::Duration;

/// The account of all elements that belong to no other.
pub(crate) const OWN: usize = 0;

/// An account of processor time and memory.
#[derive(Clone, Debug)]
pub struct AccountPlan {
    /// Its name; that of the router's own account is empty.
    pub name: String,
    /// The element that declares it.
    pub element: Option<usize>,
    /// The part of each worker's processor that it may use.
    pub share: CpuShare,
    /// The longest time for which one run of another account may keep it waiting.
    pub delay: Option<Duration>,
    /// Whether its tasks and timers wait until it is released.
    pub held: bool,
    /// The limits of its memory, and the element that declares them.
    pub limits: Option<MemoryLimits>,
    /// Its memory; the router's own is not counted.
    pub memory: Option<Arc<AccountMemory>>,
}

/// The place at which packets go between the router's own tasks and the elements of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountBoundary {
    /// The element of the account.
    pub(crate) element: usize,
    /// Whether packets are pushed into it; else they are pulled out of it.
    pub(crate) comes_in: bool,
}

impl AccountPlan {
    fn new(account: &CpuAccount) -> AccountPlan {
        let limit = account.limit.map(|limit| limit.0);
        AccountPlan {
            element: account.element,
            share: CpuShare { guarantee: account.guarantee.0, limit },
            delay: account.delay,
            held: account.held,
            ..AccountPlan::named(&account.name)
        }
    }

    fn named(name: &str) -> AccountPlan {
        let share = CpuShare { guarantee: 0.0, limit: None };
        let (name, memory) = (name.to_owned(), Some(Arc::new(AccountMemory::new())));
        AccountPlan { name, element: None, share, delay: None, held: false, limits: None, memory }
    }

    /// The router's own account.
    fn own() -> AccountPlan {
        AccountPlan { memory: None, ..AccountPlan::named("") }
    }

    /// Applies its limits to its memory.
    pub(crate) fn apply_limits(&self) {
        let Some(memory) = &self.memory else { return };
        let heap = self.limits.as_ref().and_then(|limits| limits.heap);
        let heap = heap.map(|heap| usize::try_from(heap).unwrap_or(usize::MAX));
        memory.set_limits(heap, self.limits.as_ref().and_then(|limits| limits.packets));
    }
}

/// Gives the router's own account the guarantee that all others leave.
pub(crate) fn give_rest(accounts: &mut [AccountPlan]) {
    if let [own, others @ ..] = accounts {
        let promised: f64 = others.iter().map(|plan| plan.share.guarantee).sum();
        own.share.guarantee = (1.0 - promised).max(0.0);
    }
}

/// Finds the accounts, the router's own first, and the account of each element; no accounts where
/// none is declared.
pub(super) fn find(graph: &Graph, facts: &Facts, plan: &mut Assignment) {
    if facts.accounts.is_empty() && facts.contexts.is_empty() && facts.limits.is_empty() {
        return;
    }
    let mut accounts = vec![AccountPlan::own()];
    accounts.extend(facts.accounts.iter().map(AccountPlan::new));
    for (_, context) in &facts.contexts {
        if accounts.iter().all(|account| account.name != *context) {
            accounts.push(AccountPlan::named(context));
        }
    }
    for limits in &facts.limits {
        let there = accounts.iter().position(|account| account.name == limits.name);
        let account = there.unwrap_or_else(|| {
            accounts.push(AccountPlan::named(&limits.name));
            accounts.len() - 1
        });
        accounts[account].limits = Some(limits.clone());
    }
    give_rest(&mut accounts);
    let by_name: Vec<(String, usize)> =
        accounts.iter().enumerate().skip(1).map(|(n, it)| (it.name.clone(), n)).collect();
    for element in 0..graph.elements.len() {
        let of_thread = || {
            let thread = said_of(graph, &facts.homes, element)?;
            let (_, context) = facts.contexts.iter().find(|(it, _)| *it == thread)?;
            accounts.iter().position(|account| account.name == *context)
        };
        plan[element].account = said_of(graph, &by_name, element).or_else(of_thread).unwrap_or(OWN);
    }
    plan.accounts = accounts;
}

impl Assignment {
    /// Has the account of an element pay for memory that this thread allocates, until the result is
    /// dropped.
    pub(crate) fn payment(&self, element: usize) -> Option<HeapPayment> {
        let account = self.accounts.get(self[element].account)?;
        Some(account.memory.as_ref()?.heap()?.pay())
    }
}

/// The places at which packets go between the router's own tasks and the elements of accounts.
pub(crate) fn boundaries(graph: &Graph, plan: &Assignment) -> Vec<AccountBoundary> {
    let mut found = Vec::new();
    for edge in &graph.edges {
        let (comes_in, element, other) = match edge.flow {
            Flow::Pull => (false, edge.from.node, edge.to.node),
            _ => (true, edge.to.node, edge.from.node),
        };
        let boundary = AccountBoundary { element, comes_in };
        let crosses = plan[element].account != OWN && plan[other].account == OWN;
        if crosses && !found.contains(&boundary) {
            found.push(boundary);
        }
    }
    found
}

/// The accounts to which the router's own tasks bring packets; none if those tasks do anything else: if one takes packets
/// out of a store, or asks a source whose packets reach no store of an account, or if packets come into accounts otherwise.
pub(crate) fn receivers(graph: &Graph, plan: &Assignment) -> Vec<usize> {
    let is_own = |element: usize| plan[element].account == OWN;
    let role = |element: usize| graph.elements[element].class.role;
    let elements = || 0..graph.elements.len();
    let is_pulled = graph
        .edges
        .iter()
        .any(|edge| edge.flow == Flow::Pull && (is_own(edge.from.node) || is_own(edge.to.node)));
    let entries: Vec<usize> = boundaries(graph, plan).iter().map(|it| it.element).collect();
    let has_store = elements().any(|it| is_own(it) && role(it) == Role::Store);
    if is_pulled || has_store || entries.iter().any(|&it| role(it) != Role::Store) {
        return Vec::new();
    }
    let mut reaches = vec![false; graph.elements.len()];
    let mut next = entries.clone();
    while let Some(element) = next.pop() {
        for edge in graph.edges.iter().filter(|edge| edge.to.node == element) {
            let from = edge.from.node;
            if is_own(from) && !std::mem::replace(&mut reaches[from], true) {
                next.push(from);
            }
        }
    }
    let is_source = |it: usize| matches!(role(it), Role::Source | Role::Duplex);
    if elements().any(|it| is_own(it) && is_source(it) && !reaches[it]) {
        return Vec::new();
    }
    let mut accounts: Vec<usize> = entries.iter().map(|&it| plan[it].account).collect();
    accounts.sort_unstable();
    accounts.dedup();
    accounts
}
