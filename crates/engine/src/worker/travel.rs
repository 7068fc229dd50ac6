//! Tasks on their way from one worker to another, with the elements that go
//! with them.
//!
//! Both workers take part between two bursts: the one packs what there is of
//! the elements and hands it to the other as an errand. In between nobody can
//! reach them, for packets come to them from these tasks alone.

use super::Worker;
use super::core::Ledger;
use super::task::Carried;
use crate::node::{Node, Pass};
use crate::time::Time;

/// Everything that moves with the tasks of one element.
struct Luggage {
    /// The element whose tasks they are.
    element: usize,
    tasks: Vec<Carried>,
    pieces: Vec<Piece>,
}

/// An element that moves, with its place in a pass, its timer and its counts.
struct Piece {
    element: usize,
    node: Option<Box<dyn Node>>,
    pass: Option<Box<Pass>>,
    within: Option<(usize, u8)>,
    timer: Option<Time>,
    ledger: Ledger,
}

impl Worker {
    /// Sends the tasks of `element` to another worker, with the elements that
    /// go with them.
    pub(crate) fn send(&mut self, element: usize, with: &[usize], to: usize) {
        let (shared, mailbox) = (&self.shared[self.index], &mut self.mailbox);
        let tasks = self.tasks.leave(element, |task| {
            shared.forget(task);
            mailbox.forget(task);
        });
        self.core.at_home[element] = false;
        let pieces = with.iter().map(|&element| self.pack(element)).collect();
        let luggage = Luggage { element, tasks, pieces };
        self.shared[to].send(Box::new(move |worker| worker.receive(luggage)));
    }

    fn pack(&mut self, element: usize) -> Piece {
        self.core.at_home[element] = false;
        let slot = &mut self.slots[element];
        Piece {
            element,
            node: slot.node.take(),
            pass: slot.pass.take(),
            within: slot.within.take(),
            timer: self.core.timers.take(element),
            ledger: std::mem::take(&mut self.core.ledger[element]),
        }
    }

    fn receive(&mut self, luggage: Luggage) {
        for piece in luggage.pieces {
            let element = piece.element;
            let slot = &mut self.slots[element];
            (slot.node, slot.pass, slot.within) = (piece.node, piece.pass, piece.within);
            if let Some(time) = piece.timer {
                self.core.timers.set(element, time);
            }
            self.core.ledger[element].add(&piece.ledger);
            self.core.at_home[element] = true;
        }
        self.core.at_home[luggage.element] = true;
        self.tasks.arrive(luggage.tasks);
    }
}
