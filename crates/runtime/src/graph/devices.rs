//! Step: the devices that elements stand for.
//!
//! The only step that asks the machine; its answers are plain data, so that the steps after it can
//! be tested for any machine.

use super::Graph;
use castanet_element::args::ScopedNames;
use castanet_element::device::Device;

/// By element: its device, if it stands for one and its arguments are right.
pub fn find(graph: &Graph, names: &ScopedNames) -> Vec<Option<Device>> {
    let device = |it: &super::Element| (it.class.factory.device?)(&it.config, names.of(&it.name));
    graph.elements.iter().map(device).collect()
}
