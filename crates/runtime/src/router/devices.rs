//! Devices that go and come back while workers run.

use super::Router;

impl Router {
    /// Has every element with queues of a device close those that are gone, and take those that were
    /// opened in their place. Returns when all workers have done so, between two bursts, except those
    /// that are stuck in an element.
    pub fn exchange_devices(&mut self) {
        let elements: Vec<usize> = (0..self.config.graph.elements.len())
            .filter(|&it| self.config.graph.elements[it].class.per_worker)
            .collect();
        if !elements.is_empty() {
            self.workers.ask_all(move |worker| worker.exchange_devices(&elements));
        }
    }
}
