//! Loads a system file of tenants, and the configuration of each tenant.

use crate::console::Terminal;
use crate::load::{LibraryClasses, LoadedConfiguration, Origin, open_in};
use castanet_element::class::Library;
use castanet_lang::{Diagnostic, Diagnostics, FlatGraph, SourceMap, expand, nearest, variables};
use castanet_runtime::router::{Options, Router};
use castanet_tenants::{ProcessGraph, System, SystemTable, Tenant, master_graph};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A system file, and the configuration that it and its tenants make.
pub(crate) struct LoadedSystem {
    /// The configuration of all tenants and devices.
    pub(crate) configuration: LoadedConfiguration,
    /// Its devices and tenants.
    pub(crate) table: SystemTable,
    /// The graphs of tenants with a process of their own.
    pub(crate) processes: Vec<ProcessGraph>,
}

/// Reads a system file and the files of its tenants; everything wrong is in `found` of the result.
pub(crate) fn load(
    path: &Path,
    vars: &[(String, String)],
    library: &Library,
    clickpath: Option<&str>,
) -> LoadedSystem {
    let mut all = LoadedConfiguration::new(SourceMap::new());
    let system = match all.sources.load(path) {
        Ok(file) => {
            all.text = Some(all.sources.text(file).to_string());
            System::parse(&all.sources, file, &mut all.found)
        }
        Err(error) => {
            all.found.push(error);
            System::default()
        }
    };
    for (name, _) in vars {
        let message = format!("{name}: a system file has no variables");
        all.found.error(None, message);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut graphs = Vec::new();
    for tenant in &system.tenants {
        let (next, graph) = load_tenant(all, folder, tenant, library, clickpath);
        all = next;
        graphs.push(graph);
    }
    let master = master_graph(&system, &graphs, library, &mut all.found);
    all.flat = master.graph;
    if !all.found.has_errors() {
        check_processes(&master.processes, library, &mut all.found);
    }
    let table = SystemTable::new(&system, &master.elements);
    LoadedSystem { configuration: all, table, processes: master.processes }
}

/// Reports errors in graphs of other processes, which are built there, where nobody sees the place of an
/// error.
fn check_processes(processes: &[ProcessGraph], library: &Library, found: &mut Diagnostics) {
    let options = Options::new(Arc::new(Terminal));
    for it in processes {
        Router::check(&it.graph, library, &options, found);
    }
}

/// Reads the configuration of a tenant beside the texts that were read before.
fn load_tenant(
    mut all: LoadedConfiguration,
    folder: &Path,
    tenant: &Tenant,
    library: &Library,
    clickpath: Option<&str>,
) -> (LoadedConfiguration, FlatGraph) {
    let before = all.sources.texts().count();
    let origin = Origin::File(folder.join(&tenant.file.value));
    let loaded = open_in(std::mem::take(&mut all.sources), &origin, clickpath);
    all.sources = loaded.sources;
    let is_understood = !loaded.found.has_errors();
    for mut diagnostic in loaded.found.iter().cloned() {
        // An error without a place is about the file's name.
        diagnostic.span = diagnostic.span.or(Some(tenant.file.span));
        all.found.push(diagnostic);
    }
    let Some(tree) = loaded.tree.filter(|_| is_understood) else {
        return (all, FlatGraph::default());
    };
    check_variables(&mut all, before, tenant);
    let values: Vec<(String, String)> =
        tenant.variables.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect();
    let (graph, found) = expand(&tree, &LibraryClasses(library), &values);
    all.found.append(found);
    (all, graph)
}

/// Reports values of variables that a tenant's configuration, in the texts from number `before`,
/// does not mention.
fn check_variables(all: &mut LoadedConfiguration, before: usize, tenant: &Tenant) {
    let known: BTreeSet<String> =
        all.sources.texts().skip(before).flat_map(variables).map(str::to_owned).collect();
    for (name, value) in tenant.variables.iter().filter(|(name, _)| !known.contains(name)) {
        let message = format!("the configuration of `{}` has no variable `{name}`", tenant.name);
        let near = nearest(name, known.iter().map(String::as_str));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        all.found.push(Diagnostic::error(value.span, message).with_maybe_help(help));
    }
}
