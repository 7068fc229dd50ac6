//! Tasks on their way from one worker to another, with the elements that go
//! with them.
//!
//! Both workers take part between two bursts: the one packs what it has of the
//! elements and hands it to the other as an errand, which sends back what it had
//! of them itself. In between nobody can reach them where they are missing, for
//! packets come to them from these tasks alone.

use super::Worker;
use super::core::Ledger;
use super::task::Carried;
use crate::node::{Node, Pass};
use crate::time::Time;

/// Everything that moves with the tasks of one element.
struct Luggage {
    /// From which worker.
    from: usize,
    /// The element whose tasks they are.
    element: usize,
    tasks: Vec<Carried>,
    pieces: Vec<Piece>,
}

/// An element as one worker has it, with the pass that begins with it, its timer
/// and its counts.
struct Piece {
    element: usize,
    node: Option<Box<dyn Node>>,
    pass: Option<Box<Pass>>,
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
        with.iter().chain([&element]).for_each(|&it| self.core.at_home[it] = false);
        let pieces = with.iter().map(|&it| self.pack(it)).collect();
        let luggage = Luggage { from: self.index, element, tasks, pieces };
        self.shared[to].send(Box::new(move |worker| worker.receive(luggage)));
    }

    fn receive(&mut self, luggage: Luggage) {
        let Luggage { from, element, tasks, pieces } = luggage;
        let own: Vec<Piece> = pieces.iter().map(|piece| self.pack(piece.element)).collect();
        for piece in pieces {
            self.core.at_home[piece.element] = true;
            self.unpack(piece);
        }
        self.core.at_home[element] = true;
        self.tasks.arrive(tasks);
        let back = move |worker: &mut Worker| own.into_iter().for_each(|it| worker.unpack(it));
        self.shared[from].send(Box::new(back));
    }

    fn pack(&mut self, element: usize) -> Piece {
        let slot = &mut self.slots[element];
        Piece {
            element,
            node: slot.node.take(),
            pass: slot.pass.take(),
            timer: self.core.timers.take(element),
            ledger: std::mem::take(&mut self.core.ledger[element]),
        }
    }

    fn unpack(&mut self, piece: Piece) {
        let slot = &mut self.slots[piece.element];
        (slot.node, slot.pass) = (piece.node, piece.pass);
        if let Some(time) = piece.timer {
            self.core.timers.set(piece.element, time);
        }
        self.core.ledger[piece.element] = piece.ledger;
    }
}
