//! Step: the devices that elements stand for.
//!
//! The only step that asks the machine; its answers are plain data, so that the steps after it can
//! be tested for any machine.

use super::Graph;
use castanet_element::args::Names;
use castanet_element::device::Device;
use castanet_element::element::Facts;

/// By element: its device, if it stands for one and its arguments are right.
pub fn find(graph: &Graph, facts: &Facts) -> Vec<Option<Device>> {
    let names = Names::new(&facts.addresses, None);
    let device = |it: &super::Element| (it.class.factory.device?)(&it.config, &names);
    graph.elements.iter().map(device).collect()
}
