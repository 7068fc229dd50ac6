//! Migration of tasks from one worker to another, with the elements that go with them.
//!
//! Both workers take part between two bursts: the first packs its nodes of the elements and sends
//! them to the second in a command, which sends back the nodes that it had itself. In between no
//! packet can reach the elements, for packets come to them from these tasks alone.

use super::Worker;
use super::task::MigratedTask;
use crate::worker::chain::FusedChain;
use castanet_element::exec::Counters;
use castanet_element::node::RoleNode;
use castanet_element::time::Time;

/// Tasks of one element and the elements that go with them.
struct TaskMigration {
    /// The worker that they leave.
    from: usize,
    /// The element of the tasks.
    element: usize,
    tasks: Vec<MigratedTask>,
    elements: Vec<MigratedElement>,
}

/// An element of one worker, with the chain that begins with it, its timer and its counters.
struct MigratedElement {
    element: usize,
    node: Option<RoleNode>,
    chain: Option<Box<FusedChain>>,
    timer: Option<Time>,
    counters: Counters,
}

impl Worker {
    /// Sends the tasks of `element` to another worker, with the elements that go with them.
    pub(crate) fn migrate(&mut self, element: usize, with: &[usize], to: usize) {
        let (shared, inbox) = (&self.shared[self.index], &mut self.inbox);
        let tasks = self.tasks.take_out(element, |task| {
            shared.forget(task);
            inbox.forget(task);
        });
        with.iter().chain([&element]).for_each(|&it| self.exec.at_home[it] = false);
        let elements = with.iter().map(|&it| self.pack(it)).collect();
        let migration = TaskMigration { from: self.index, element, tasks, elements };
        self.shared[to].send(Box::new(move |worker| worker.receive_migration(migration)));
    }

    fn receive_migration(&mut self, migration: TaskMigration) {
        let TaskMigration { from, element, tasks, elements } = migration;
        let own: Vec<MigratedElement> =
            elements.iter().map(|moved| self.pack(moved.element)).collect();
        for moved in elements {
            self.exec.at_home[moved.element] = true;
            self.unpack(moved);
        }
        self.exec.at_home[element] = true;
        self.tasks.take_in(tasks);
        let back = move |worker: &mut Worker| own.into_iter().for_each(|it| worker.unpack(it));
        self.shared[from].send(Box::new(back));
    }

    fn pack(&mut self, element: usize) -> MigratedElement {
        let slot = &mut self.graph.slots[element];
        MigratedElement {
            element,
            node: slot.node.take(),
            chain: slot.chain.take(),
            timer: self.exec.timers.take(element),
            counters: std::mem::take(&mut self.exec.counters[element]),
        }
    }

    fn unpack(&mut self, moved: MigratedElement) {
        let slot = &mut self.graph.slots[moved.element];
        (slot.node, slot.chain) = (moved.node, moved.chain);
        if let Some(time) = moved.timer {
            self.exec.timers.set(moved.element, time);
        }
        self.exec.counters[moved.element] = moved.counters;
    }
}
