//! The resources outside of the process that the elements of a graph need.

use super::Graph;
use castanet_element::args::ScopedNames;
use castanet_element::resource::Resource;

/// The resources of all elements, each with its element; none of elements whose arguments are wrong.
pub fn find(graph: &Graph, names: &ScopedNames) -> Vec<(usize, Resource)> {
    let of_element = |(n, it): (usize, &super::Element)| {
        let found = it.class.factory.resources.map(|find| find(&it.config, names.of(&it.name)));
        found.into_iter().flatten().map(move |resource| (n, resource)).collect::<Vec<_>>()
    };
    graph.elements.iter().enumerate().flat_map(of_element).collect()
}
