//! Configurations of tenants: from their files, or installed while the system runs.

use super::load::{LoadedSystem, combine};
use super::store::TenantStore;
use crate::load::LibraryClasses;
use castanet_element::class::Library;
use castanet_lang::{Diagnostics, FileId, FlatGraph, SourceMap, expand, parse};
use castanet_tenants::{System, Tenant};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// By tenant: the text that was installed in place of its file; empty where the configuration was removed.
pub(crate) type InstalledTexts = BTreeMap<String, Arc<str>>;

/// The configurations of all tenants of a system file.
#[derive(Clone)]
pub(crate) struct TenantConfigurations {
    /// All texts.
    pub(super) sources: SourceMap,
    /// The folder of the system file.
    pub(super) folder: PathBuf,
    /// The system file's text.
    pub(super) text: Arc<str>,
    /// Its devices and tenants.
    pub(super) system: Arc<System>,
    /// By tenant.
    pub(super) tenants: Vec<TenantTexts>,
}

/// The configurations of one tenant.
#[derive(Clone, Default)]
pub(super) struct TenantTexts {
    /// That of the file.
    pub(super) file: TenantText,
    /// That which was installed in its place.
    pub(super) installed: Option<TenantText>,
    /// The place among the sources for texts that are installed.
    pub(super) slot: Option<FileId>,
    /// Whether its account is held.
    pub(super) is_held: bool,
    /// Whether its faults have taken its configuration out for some time.
    pub(super) is_suspended: bool,
}

/// A text, and the graph that it describes.
#[derive(Clone, Default)]
pub(super) struct TenantText {
    pub(super) text: Arc<str>,
    pub(super) graph: Arc<FlatGraph>,
}

impl TenantTexts {
    /// The configuration that it has.
    pub(super) fn current(&self) -> &TenantText {
        self.installed.as_ref().unwrap_or(&self.file)
    }

    /// The graph that runs: none of a tenant that is suspended.
    pub(super) fn running_graph(&self) -> Arc<FlatGraph> {
        match self.is_suspended {
            true => Arc::default(),
            false => self.current().graph.clone(),
        }
    }
}

impl TenantConfigurations {
    /// The system.
    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    /// A file of the system file's folder, or elsewhere if the path is absolute.
    pub(crate) fn path(&self, relative: &Path) -> PathBuf {
        self.folder.join(relative)
    }

    /// The folder in which installed configurations outlive the process, if there is one.
    pub(crate) fn store(&self) -> Option<TenantStore> {
        let folder = self.system.store.as_ref()?;
        Some(TenantStore::new(self.folder.join(&folder.value)))
    }

    /// The text that was installed for a tenant, if one was.
    pub(crate) fn installed_text(&self, tenant: usize) -> Option<&str> {
        self.tenants[tenant].installed.as_ref().map(|it| &*it.text)
    }

    /// The tenant of a name, with its number.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &Tenant)> {
        self.system.tenants.iter().enumerate().find(|(_, tenant)| tenant.name == name)
    }

    /// The tenants that run nothing until something is installed.
    pub(super) fn standby_tenants(&self) -> Vec<usize> {
        let tenants = self.system.tenants.iter().enumerate();
        tenants.filter(|(_, tenant)| tenant.standby).map(|(number, _)| number).collect()
    }

    /// The text of the configuration that a tenant has.
    pub(crate) fn text_of(&self, tenant: usize) -> &str {
        &self.tenants[tenant].current().text
    }

    /// The graph that a tenant has.
    pub(crate) fn graph_of(&self, tenant: usize) -> &FlatGraph {
        &self.tenants[tenant].current().graph
    }

    /// The source of the configuration that a tenant has: `file`, `installed`, or `removed`.
    pub(crate) fn origin_of(&self, tenant: usize) -> &'static str {
        match &self.tenants[tenant].installed {
            None => "file",
            Some(it) if it.text.is_empty() => "removed",
            Some(_) => "installed",
        }
    }

    /// The place of the last text that was installed for a tenant, by which its errors are told apart.
    pub(crate) fn slot_of(&self, tenant: usize) -> Option<FileId> {
        self.tenants[tenant].slot
    }

    /// The same configurations, but that the account of one tenant is held from the beginning, or is not.
    pub(crate) fn with_hold(&self, tenant: usize, is_held: bool) -> TenantConfigurations {
        let mut next = self.clone();
        next.tenants[tenant].is_held = is_held;
        next
    }

    /// Whether a tenant is suspended.
    pub(crate) fn is_suspended(&self, tenant: usize) -> bool {
        self.tenants[tenant].is_suspended
    }

    /// Whether the account of a tenant is held.
    pub(crate) fn is_held(&self, tenant: usize) -> bool {
        self.tenants[tenant].is_held
    }

    /// The same configurations, but that of one tenant runs, or is suspended.
    pub(crate) fn with_suspension(
        &self,
        tenant: usize,
        is_suspended: bool,
        library: &Library,
    ) -> LoadedSystem {
        let mut next = self.clone();
        next.tenants[tenant].is_suspended = is_suspended;
        combine(next, Diagnostics::new(), library)
    }

    /// The texts that were installed.
    pub(crate) fn installed(&self) -> InstalledTexts {
        let tenants = self.system.tenants.iter().zip(&self.tenants);
        let installed = tenants.filter_map(|(tenant, texts)| {
            Some((tenant.name.clone(), texts.installed.as_ref()?.text.clone()))
        });
        installed.collect()
    }

    /// The same configurations, but for one tenant, which has that of its file.
    pub(crate) fn with_file(&self, tenant: usize, library: &Library) -> LoadedSystem {
        let mut next = self.clone();
        // A tenant on standby would run nothing with the next reload.
        let standby = next.system.tenants[tenant].standby;
        next.tenants[tenant].installed = standby.then(|| next.tenants[tenant].file.clone());
        next.tenants[tenant].is_suspended = false;
        combine(next, Diagnostics::new(), library)
    }

    /// The same configurations, but for one tenant, which has this text: everything wrong is in `found` of the
    /// result. `most_elements` are as many elements as it may have.
    pub(crate) fn with_text(
        &self,
        tenant: usize,
        text: &str,
        most_elements: Option<u32>,
        library: &Library,
    ) -> LoadedSystem {
        let mut next = self.clone();
        let mut found = Diagnostics::new();
        next.install(tenant, text, library, &mut found);
        let elements = next.graph_of(tenant).elements.len();
        if let Some(most) = most_elements.filter(|&most| elements > most as usize) {
            let message = format!("the configuration has {elements} elements, of {most} allowed");
            found.error(None, message);
            next.tenants[tenant].installed = Some(TenantText::default());
        }
        combine(next, found, library)
    }

    /// Puts a text in place of the configuration of a tenant.
    pub(super) fn install(
        &mut self,
        tenant: usize,
        text: &str,
        library: &Library,
        found: &mut Diagnostics,
    ) {
        let name = format!("configuration of {}", self.system.tenants[tenant].name);
        let texts = &mut self.tenants[tenant];
        let slot = match texts.slot {
            Some(slot) => {
                self.sources.replace(slot, name, text);
                slot
            }
            None => *texts.slot.insert(self.sources.add(name, text)),
        };
        // Libraries would be files of the host.
        let (tree, errors) = parse(&mut self.sources, slot);
        let is_understood = !errors.has_errors();
        found.append(errors);
        let mut graph = FlatGraph::default();
        if is_understood {
            let variables = &self.system.tenants[tenant].variables;
            let values: Vec<(String, String)> =
                variables.iter().map(|(name, it)| (name.clone(), it.value.clone())).collect();
            let (flat, errors) = expand(&tree, &LibraryClasses(library), &values);
            found.append(errors);
            graph = flat;
        }
        texts.installed = Some(TenantText { text: text.into(), graph: Arc::new(graph) });
        texts.is_suspended = false;
    }
}
