//! Loads a system file of tenants, and the configuration of each tenant.

use super::configurations::{InstalledTexts, TenantConfigurations, TenantText, TenantTexts};
use super::places;
use crate::console::Terminal;
use crate::load::{LibraryClasses, LoadedConfiguration, Origin, open_in};
use castanet_element::class::Library;
use castanet_lang::{Diagnostic, Diagnostics, SourceMap, expand, nearest, variables};
use castanet_runtime::router::{Options, Router};
use castanet_tenants::{ProcessGraph, System, SystemTable, Tenant, TenantGraph, master_graph};
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
    /// The configurations of which it was made.
    pub(crate) configurations: TenantConfigurations,
}

impl LoadedSystem {
    /// The configuration with those of which it was made.
    pub(crate) fn into_configuration(self) -> LoadedConfiguration {
        let tenants = Some(Box::new(self.configurations));
        LoadedConfiguration { tenants, ..self.configuration }
    }
}

/// Reads a system file, the files of its tenants and the configurations that are stored in their place;
/// everything wrong is in `found` of the result.
pub(crate) fn load(
    path: &Path,
    vars: &[(String, String)],
    library: &Library,
    clickpath: Option<&str>,
) -> LoadedSystem {
    load_with(path, vars, library, clickpath, None)
}

/// The same; the texts that were installed in place of tenants' files are given, and not those that are stored.
pub(crate) fn load_with(
    path: &Path,
    vars: &[(String, String)],
    library: &Library,
    clickpath: Option<&str>,
    installed: Option<&InstalledTexts>,
) -> LoadedSystem {
    let mut all = LoadedConfiguration::new(SourceMap::new());
    let mut system_text = String::new();
    let system = match all.sources.load(path) {
        Ok(file) => {
            system_text = all.sources.text(file).to_string();
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
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    // A reload opens what is new itself; under --confine it could not look for the rest.
    if installed.is_none() {
        places::check(&system, &folder, &mut all.found);
    }
    let mut tenants = Vec::new();
    for tenant in &system.tenants {
        let (next, file) = load_tenant(all, &folder, tenant, library, clickpath);
        all = next;
        tenants.push(TenantTexts { file, ..TenantTexts::default() });
    }
    let LoadedConfiguration { sources, mut found, .. } = all;
    let (text, system) = (system_text.into(), Arc::new(system));
    let mut configurations = TenantConfigurations { sources, folder, text, system, tenants };
    let stored = match (installed, configurations.store().filter(|it| it.folder().is_dir())) {
        (None, Some(store)) => store.read(configurations.system()),
        _ => Ok(InstalledTexts::new()),
    };
    let stored = stored.unwrap_or_else(|error| {
        found.error(None, error);
        InstalledTexts::new()
    });
    for tenant in configurations.standby_tenants() {
        configurations.tenants[tenant].installed = Some(TenantText::default());
    }
    for (name, text) in installed.unwrap_or(&stored) {
        if let Some((tenant, _)) = configurations.find(name) {
            configurations.install(tenant, text, library, &mut found);
        }
    }
    combine(configurations, found, library)
}

/// Makes the graph of all tenants; what is wrong so far is `found`.
pub(super) fn combine(
    configurations: TenantConfigurations,
    found: Diagnostics,
    library: &Library,
) -> LoadedSystem {
    let mut all = LoadedConfiguration::new(configurations.sources.clone());
    all.found = found;
    all.text = Some(configurations.text.to_string());
    let system = configurations.system();
    let graph = |it: &TenantTexts| TenantGraph { graph: it.running_graph(), is_held: it.is_held };
    let graphs: Vec<TenantGraph> = configurations.tenants.iter().map(graph).collect();
    let master = master_graph(system, &graphs, library, &mut all.found);
    all.flat = master.graph;
    if !all.found.has_errors() {
        check_processes(&master.processes, library, &mut all.found);
    }
    let table = SystemTable::new(system, &master.elements);
    LoadedSystem { configuration: all, table, processes: master.processes, configurations }
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
) -> (LoadedConfiguration, TenantText) {
    let Some(path) = &tenant.file else { return (all, TenantText::default()) };
    let before = all.sources.texts().count();
    let origin = Origin::File(folder.join(&path.value));
    let loaded = open_in(std::mem::take(&mut all.sources), &origin, clickpath);
    all.sources = loaded.sources;
    let is_understood = !loaded.found.has_errors();
    for mut diagnostic in loaded.found.iter().cloned() {
        // An error without a place is about the file's name.
        diagnostic.span = diagnostic.span.or(Some(path.span));
        all.found.push(diagnostic);
    }
    let Some(tree) = loaded.tree.filter(|_| is_understood) else {
        return (all, TenantText::default());
    };
    check_variables(&mut all, before, tenant);
    let values: Vec<(String, String)> =
        tenant.variables.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect();
    let (graph, found) = expand(&tree, &LibraryClasses(library), &values);
    all.found.append(found);
    let text = loaded.text.unwrap_or_default().into();
    (all, TenantText { text, graph: Arc::new(graph) })
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
