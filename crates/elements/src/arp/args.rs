//! The arguments of `ARPQuerier` and `ARPTable`.

use super::arp_querier::ARPQuerier;
use super::resolver::Resolver;
use super::responder_entry::host_or_net;
use castanet_element::prelude::*;
use castanet_kit::arp::Limits;

/// The address of an interface, and the Ethernet address of the same name if there is one.
pub struct InterfaceAddress(Net, Option<MacAddr>);

impl FromArg for InterfaceAddress {
    const SYNTAX: &'static str = "an IPv4 address or prefix";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(InterfaceAddress(host_or_net(text, names)?, MacAddr::from_arg(text, names).ok()))
    }
}

#[derive(Args)]
pub struct ARPQuerierArgs {
    /// IPv4 address of this host; a prefix length gives the default of BROADCAST.
    #[arg]
    ip: InterfaceAddress,
    /// Ethernet address of this host; by default that of the same name as IP.
    #[arg]
    eth: Option<MacAddr>,
    /// Name of the `ARPTable` to use; by default the element has a table of its own.
    #[arg(keyword)]
    table: Option<String>,
    /// Time after which an unconfirmed address is queried again when a packet uses it; 0 for never.
    #[arg(keyword, default = Duration::from_secs(60))]
    poll_timeout: Duration,
    /// IPv4 broadcast address of the link; by default that of the prefix of IP.
    #[arg(keyword)]
    broadcast: Option<Ipv4Addr>,
    /// Whether repeated queries are broadcast; by default they go to the known Ethernet address.
    #[arg(keyword, default = false)]
    broadcast_poll: bool,
    #[arg(flatten)]
    table_args: ARPTableArgs,
}

/// Limits of a table; an `ARPQuerier` with TABLE ignores them.
#[derive(Args)]
pub struct ARPTableArgs {
    #[arg(flatten)]
    queue: QueueLimitArgs,
    /// When more than CAPACITY packets are queued, one of this many is dropped; at least 1.
    #[arg(keyword, default = 2)]
    capacity_slim_factor: u32,
    /// Time after which an unconfirmed entry is removed; 0 for never.
    #[arg(keyword, default = Duration::from_secs(300))]
    timeout: Duration,
}

/// Limits of the entries and packets of a table.
#[derive(Args)]
pub struct QueueLimitArgs {
    /// Maximum number of queued packets; 0 means a million.
    #[arg(keyword, default = 2048)]
    capacity: u32,
    /// Maximum number of entries, including unresolved ones; 0 means a million. If there are
    /// more, the oldest unresolved entry is removed first.
    #[arg(keyword, default = Limits::ENTRIES, shown = "65536")]
    entry_capacity: u32,
    /// Maximum number of packets queued for one address; further packets are dropped. 0 means no
    /// limit but CAPACITY.
    #[arg(keyword, default = Limits::ENTRY_PACKETS, shown = "256")]
    entry_packet_capacity: u32,
    /// Time after which the packets queued for an address are dropped, counted from the first of
    /// them; 0 keeps them as long as their entry.
    #[arg(keyword, default = Limits::PACKET_TIMEOUT, shown = "3")]
    packet_timeout: Duration,
}

impl ARPTableArgs {
    pub(crate) fn limits(&self) -> Result<Limits, ArgError> {
        if self.capacity_slim_factor == 0 {
            return Err(ArgError::new("CAPACITY_SLIM_FACTOR cannot be zero"));
        }
        let slim_factor = self.capacity_slim_factor as usize;
        Ok(Limits { slim_factor, ..self.queue.limits(self.timeout) })
    }
}

impl QueueLimitArgs {
    /// The limits, with the time after which an unconfirmed entry is removed.
    pub(crate) fn limits(&self, timeout: Duration) -> Limits {
        Limits {
            capacity: self.capacity as usize,
            entry_capacity: self.entry_capacity as usize,
            entry_packet_capacity: self.entry_packet_capacity as usize,
            packet_timeout: nanos(self.packet_timeout),
            timeout: nanos(timeout),
            ..Limits::default()
        }
    }
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(0)
}

impl Build for Resolver<ARPQuerier> {
    type Args = ARPQuerierArgs;

    fn build(args: ARPQuerierArgs, setup: &Setup) -> Result<Self, ArgError> {
        let InterfaceAddress(net, named) = args.ip;
        let no_eth = || ArgError::new("is missing, and IP is no name of one").at("ETH");
        let eth = args.eth.or(named).ok_or_else(|| no_eth().click("invalid Ethernet address"))?;
        let find_table =
            |name: &String| setup.shared_of(name, "ARPTable").map_err(|e| e.at("TABLE"));
        let broadcast = if net.prefix_len() == 32 { Ipv4Addr::BROADCAST } else { net.broadcast() };
        let (ip, broadcast) = (net.address, args.broadcast.unwrap_or(broadcast));
        Ok(Resolver {
            protocol: ARPQuerier { ip, broadcast, broadcast_poll: args.broadcast_poll },
            name: setup.name.to_owned(),
            eth,
            has_query_output: setup.outputs > 1,
            limits: args.table_args.limits()?,
            table: args.table.as_ref().map(find_table).transpose()?,
            poll: nanos(args.poll_timeout),
        })
    }
}
