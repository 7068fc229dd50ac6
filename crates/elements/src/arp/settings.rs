//! The arguments of an `ARPQuerier`.

use super::entry::host_or_net;
use super::station::Station;
use castanet_engine::prelude::*;
use castanet_kit::arp::Limits;

/// An interface's address, and the Ethernet address of the same name if there is one.
pub struct Interface(Net, Option<MacAddr>);

impl FromArg for Interface {
    const SYNTAX: &'static str = "an IPv4 address or prefix";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(Interface(host_or_net(text, names)?, MacAddr::from_arg(text, names).ok()))
    }
}

#[derive(Args)]
pub struct Settings {
    /// This host's address, with its prefix if that says what the broadcast address is.
    #[arg]
    ip: Interface,
    /// This host's Ethernet address; that of the same name as IP by default.
    #[arg]
    eth: Option<MacAddr>,
    /// The `ARPTable` to use, of which others make use too, rather than one of its own.
    #[arg(keyword)]
    table: Option<String>,
    /// How long an address is used without news before it is asked for again; 0 for ever.
    #[arg(keyword, default = Duration::from_secs(60))]
    poll_timeout: Duration,
    /// The address of all hosts on the link; by default what the prefix says.
    #[arg(keyword)]
    broadcast: Option<Ipv4Addr>,
    /// Whether to ask everyone again for an address, rather than its host.
    #[arg(keyword, default = false)]
    broadcast_poll: bool,
    #[arg(flatten)]
    room: Room,
}

/// What a table has room for; of no account where it is another's.
#[derive(Args)]
pub struct Room {
    /// How many packets may wait; 0 for a million.
    #[arg(keyword, default = 2048)]
    capacity: u32,
    /// How many addresses to keep, those that were asked for included; 0 for a million. Where
    /// there are more, the oldest without an answer goes first.
    #[arg(keyword, default = Limits::ENTRIES)]
    entry_capacity: u32,
    /// How many packets may wait for one address, after which more are dropped; 0 for as many as
    /// may wait at all.
    #[arg(keyword, default = Limits::ENTRY_PACKETS)]
    entry_packet_capacity: u32,
    /// How long packets may wait for an address, from the first of them on; 0 for as long as
    /// their entry stays.
    #[arg(keyword, default = Limits::PACKET_TIMEOUT)]
    packet_timeout: Duration,
    /// One of so many waiting packets is dropped when there are too many.
    #[arg(keyword, default = 2)]
    capacity_slim_factor: u32,
    /// How long an address is known without news; 0 for ever.
    #[arg(keyword, default = Duration::from_secs(300))]
    timeout: Duration,
}

impl Room {
    pub(crate) fn limits(&self) -> Result<Limits, ArgError> {
        if self.capacity_slim_factor == 0 {
            return Err(ArgError::new("CAPACITY_SLIM_FACTOR cannot be zero"));
        }
        Ok(Limits {
            capacity: self.capacity as usize,
            entry_capacity: self.entry_capacity as usize,
            entry_packet_capacity: self.entry_packet_capacity as usize,
            packet_timeout: nanos(self.packet_timeout),
            slim_factor: self.capacity_slim_factor as usize,
            timeout: nanos(self.timeout),
        })
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(0)
}

impl Settings {
    pub(crate) fn station(self, setup: &Setup) -> Result<Station, ArgError> {
        let Interface(net, named) = self.ip;
        let no_eth = || ArgError::new("is missing, and IP is no name of one").at("ETH");
        let eth = self.eth.or(named).ok_or_else(|| no_eth().click("invalid Ethernet address"))?;
        let linked = |name: &String| setup.linked(name, "ARPTable").map_err(|e| e.at("TABLE"));
        let all = if net.prefix_len() == 32 { Ipv4Addr::BROADCAST } else { net.broadcast() };
        Ok(Station {
            name: setup.name.to_owned(),
            eth,
            ip: net.address,
            broadcast: self.broadcast.unwrap_or(all),
            queries_apart: setup.outputs > 1,
            limits: self.room.limits()?,
            table: self.table.as_ref().map(linked).transpose()?,
            poll: nanos(self.poll_timeout),
            broadcast_poll: self.broadcast_poll,
        })
    }
}
