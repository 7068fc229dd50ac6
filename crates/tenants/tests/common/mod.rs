//! Helpers for tests of systems.

use castanet_element::class::Library;
use castanet_lang::{AnyClass, Diagnostics, SourceMap, expand, parse};
use castanet_tenants::{MasterGraph, System, TenantGraph, master_graph};
use std::sync::Arc;

/// The classes that tenants may use.
pub(crate) fn library() -> Library {
    let mut library = castanet_elements::library();
    castanet_io::elements::CLASSES.iter().for_each(|class| library.add(class));
    castanet_tenants::CLASSES.iter().for_each(|class| library.add(class));
    library
}

/// The master graph of a system whose tenants have these texts, and the errors as Click prints them.
pub(crate) fn system(text: &str, tenants: &[&str]) -> (MasterGraph, String) {
    let (mut sources, mut found) = (SourceMap::new(), Diagnostics::new());
    let file = sources.add("system.toml", text);
    let system = System::parse(&sources, file, &mut found);
    let mut graphs: Vec<TenantGraph> = Vec::new();
    for (tenant, text) in system.tenants.iter().zip(tenants) {
        let file = sources.add(format!("{}.click", tenant.name), text);
        let (tree, errors) = parse(&mut sources, file);
        found.append(errors);
        let (graph, errors) = expand(&tree, &AnyClass, &[]);
        found.append(errors);
        graphs.push(TenantGraph { graph: Arc::new(graph), is_held: false });
    }
    let master = master_graph(&system, &graphs, &library(), &mut found);
    (master, found.render_click(&sources))
}
