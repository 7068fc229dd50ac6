//! The privileges of a configuration: capabilities, interfaces, sockets and files that it needs, with
//! the element that needs each, and the reason.

use crate::instance::{RuntimeDirectory, default_name};
use crate::load::Origin;
use crate::tenants::TenantConfigurations;
use castanet_element::resource::{Resource, ResourceKind};
use castanet_lang::SourceMap;
use castanet_runtime::graph::Graph;
use serde::Serialize;
use std::path::Path;

/// A privilege, and the part of the configuration that needs it.
#[derive(Serialize, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Privilege {
    /// The capability, the path, the address or the interface.
    pub(crate) name: String,
    /// The element as `NAME :: CLASS`, or `castanet` for the program itself.
    needed_by: String,
    reason: String,
}

/// All privileges of a configuration, by kind.
#[derive(Serialize, Default)]
pub(crate) struct Privileges {
    pub(crate) capabilities: Vec<Privilege>,
    interfaces: Vec<Privilege>,
    pub(crate) sockets: Vec<Privilege>,
    pub(crate) reads: Vec<Privilege>,
    pub(crate) writes: Vec<Privilege>,
}

impl Privileges {
    /// The privileges of a graph whose elements need these resources, and whose text is in these files.
    pub(crate) fn new(
        graph: &Graph,
        resources: Vec<(usize, Resource)>,
        sources: &SourceMap,
    ) -> Privileges {
        let mut all = Privileges::default();
        let names = sources.named_texts().map(|(name, _)| name);
        for file in names.filter(|name| Path::new(name).is_file()) {
            let why = "reads the configuration from it, again at each reload";
            all.add(Resource::new(ResourceKind::ReadFile, file, why), "castanet".into());
        }
        for (element, resource) in resources {
            all.add(resource, graph.label(element));
        }
        all.sort();
        all
    }

    /// The same with the control sockets of tenants, and what they need to move.
    pub(crate) fn with_tenants(mut self, tenants: &TenantConfigurations) -> Privileges {
        for tenant in &tenants.system().tenants {
            let Some(control) = &tenant.control else { continue };
            let name = format!("UNIX {}", tenants.path(&control.value.socket.value).display());
            let why = format!("answers clients of tenant {} there", tenant.name);
            self.add(Resource::new(ResourceKind::Socket, name, why), "castanet".into());
        }
        if let Some(migration) = &tenants.system().migration {
            let name = tenants.path(&migration.key.value).display().to_string();
            let why = "proves that an instance may hand tenants over";
            self.add(Resource::new(ResourceKind::ReadFile, name, why), "castanet".into());
            if let Some(address) = &migration.listen {
                let name = format!("TCP {}", address.value);
                let why = "takes tenants in from other instances";
                self.add(Resource::new(ResourceKind::Socket, name, why), "castanet".into());
            }
        }
        self.sort();
        self
    }

    /// The same with the control socket of an instance of this configuration.
    pub(crate) fn with_control_socket(mut self, origin: &Origin) -> Privileges {
        let path = RuntimeDirectory::own().socket(&default_name(origin));
        let name = format!("UNIX {}", path.display());
        let why = "answers `castanet ctl` there";
        self.add(Resource::new(ResourceKind::Socket, name, why), "castanet".into());
        self.sort();
        self
    }

    fn add(&mut self, resource: Resource, needed_by: String) {
        let list = match resource.kind {
            ResourceKind::Capability => &mut self.capabilities,
            ResourceKind::Interface => &mut self.interfaces,
            ResourceKind::Socket => &mut self.sockets,
            ResourceKind::ReadFile => &mut self.reads,
            ResourceKind::WriteFile => &mut self.writes,
        };
        list.push(Privilege { name: resource.name, needed_by, reason: resource.reason });
    }

    fn sort(&mut self) {
        let lists = [
            &mut self.capabilities,
            &mut self.interfaces,
            &mut self.sockets,
            &mut self.reads,
            &mut self.writes,
        ];
        for list in lists {
            list.sort();
            list.dedup();
        }
    }

    /// The privileges for people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (title, list) in [
            ("capabilities", &self.capabilities),
            ("interfaces", &self.interfaces),
            ("sockets", &self.sockets),
            ("files to read", &self.reads),
            ("files to write", &self.writes),
        ] {
            text += &format!("{title}\n");
            if list.is_empty() {
                text += "  none\n";
            }
            for it in list {
                text += &format!("  {}: {} {}\n", it.name, it.needed_by, it.reason);
            }
        }
        let mut names: Vec<&str> = self.capabilities.iter().map(|it| it.name.as_str()).collect();
        names.dedup();
        if !names.is_empty() {
            let names = names.join(" ");
            text += &format!("for a unit of systemd: AmbientCapabilities={names}\n");
        }
        text
    }
}
