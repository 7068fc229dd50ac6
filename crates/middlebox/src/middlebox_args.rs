//! The arguments of `Middlebox`.

use crate::config_line::ConfigLine;
use crate::file;
use crate::placement::Forwarding;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_io::ipfix::CollectorAddress;

/// The arguments of `Middlebox`.
#[derive(Args)]
pub struct MiddleboxArgs {
    /// A rule, as commands add it, a setting (`other`, `timeout`), or a named set (`set`). A rule with
    /// commas stands in quotes.
    #[arg(rest)]
    pub(crate) rules: Vec<ConfigLine>,
    /// A file of rules, which come before the rules in the arguments.
    #[arg(keyword)]
    pub(crate) file: Option<String>,
    /// Names of the input interfaces, in order.
    #[arg(keyword)]
    pub(crate) interfaces: Option<Words>,
    /// Names of the output interfaces, in order.
    #[arg(keyword)]
    pub(crate) out: Option<Words>,
    /// Addresses of the router itself at its interfaces, `NAME=ADDRESS` each: ICMP errors about rejected packets
    /// come from them; without one, from the destination of the packet.
    #[arg(keyword)]
    pub(crate) addresses: Option<Words>,
    /// How packets are forwarded behind the element, `bridge` or `router`: rules without effect
    /// there are refused.
    #[arg(keyword)]
    pub(crate) forwarding: Option<Forwarding>,
    /// Maximum length of an IP packet to which options are added.
    #[arg(keyword, default = 1500)]
    pub(crate) mtu: usize,
    /// Maximum number of connections, which all workers share.
    #[arg(keyword, default = 1_048_576)]
    pub(crate) connections: usize,
    /// Packets of a rule with `log` that a worker logs in a second at most; 0 for all.
    #[arg(keyword, default = 10)]
    pub(crate) log_rate: u64,
    /// A pcapng file to which logged packets are appended.
    #[arg(keyword)]
    pub(crate) log_file: Option<String>,
    /// A collector that gets records of connections by IPFIX; its port is 4739 without another.
    #[arg(keyword)]
    pub(crate) collector: Option<CollectorAddress>,
    /// Time after which a connection that goes on is exported.
    #[arg(keyword, default = Duration::from_secs(60))]
    pub(crate) active_timeout: Duration,
    /// The observation domain of the exported records.
    #[arg(keyword, default = 1)]
    pub(crate) domain: u32,
}

/// The files and the collector that the arguments name.
pub(crate) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &MiddleboxArgs| {
        let mut all = Resource::input(it.file.as_deref(), "reads rules from it");
        let mut sets = it.file.as_deref().map_or(Vec::new(), file::set_files);
        sets.extend(it.rules.iter().filter_map(ConfigLine::file));
        all.extend(sets.iter().flat_map(|path| Resource::input(Some(path), "reads a set from it")));
        all.extend(Resource::output(it.log_file.as_deref(), "appends logged packets to it"));
        all.extend(it.collector.iter().map(CollectorAddress::resource));
        all
    })
}
