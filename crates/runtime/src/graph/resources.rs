//! The resources outside of the process that the elements of a graph need.

use super::Graph;
use castanet_element::args::Names;
use castanet_element::resource::Resource;

/// The resources of all elements, each with its element; none of elements whose arguments are wrong.
pub fn find(graph: &Graph, names: &Names) -> Vec<(usize, Resource)> {
    let of_element = |(n, it): (usize, &super::Element)| {
        let found = it.class.factory.resources.map(|find| find(&it.config, names));
        found.into_iter().flatten().map(move |resource| (n, resource)).collect::<Vec<_>>()
    };
    graph.elements.iter().enumerate().flat_map(of_element).collect()
}
