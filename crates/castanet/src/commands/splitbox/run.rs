//! `castanet splitbox run`: a party of SplitBox between UDP sockets and a device of the host.

use super::super::run;
use super::super::{CommandError, CommandResult, write_out};
use crate::cli::{Configuration, Workers};
use castanet_lang::args::quote;
use castanet_splitbox::party_file::{self, FileInfo, PartyRole};
use clap::{Args, Subcommand};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

/// Maximum length of an IP packet with a datagram: that of jumbo frames.
const MAX_MTU: u32 = 9216;

/// The party to run.
#[derive(Subcommand)]
pub(crate) enum Role {
    /// Blind the packets that the host routes into a device, and send them to the others
    Entry(EntryArguments),
    /// Compute shares of results for blinded packets
    Processor(ProcessorArguments),
    /// Put results together, and hand the packets to the host
    Client(ClientArguments),
}

/// Arguments of all parties.
#[derive(Args)]
pub(crate) struct Common {
    /// The file of the party
    file: PathBuf,
    /// The key of the file
    #[arg(long, value_name = "FILE", required_unless_present = "passphrase_file")]
    key_file: Option<PathBuf>,
    /// A file with the passphrase of the file
    #[arg(long, value_name = "FILE", conflicts_with = "key_file")]
    passphrase_file: Option<PathBuf>,
    /// The address and port at which the party listens
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddrV4,
    /// Listen for commands at this socket in the file system
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    #[command(flatten)]
    workers: Workers,
    /// Say nothing while it runs
    #[arg(short, long)]
    quiet: bool,
    /// Print the configuration in the Click language, and run nothing
    #[arg(long)]
    show: bool,
}

/// Arguments of the device between a party and its host.
#[derive(Args)]
pub(crate) struct Device {
    /// Name of the TUN device that the host has while the party runs
    #[arg(long, value_name = "NAME", default_value = "splitbox")]
    device: String,
    /// The host's address on the device, and its network
    #[arg(long, value_name = "ADDRESS/LENGTH", default_value = "169.254.77.1/32")]
    address: String,
    /// The longest packet on the device
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    device_mtu: u32,
}

/// Arguments of the entry.
#[derive(Args)]
pub(crate) struct EntryArguments {
    #[command(flatten)]
    common: Common,
    /// The address of the client
    #[arg(long, value_name = "ADDRESS:PORT")]
    client: SocketAddrV4,
    /// The address of a processor; once for each, in order
    #[arg(long, value_name = "ADDRESS:PORT", required = true)]
    processor: Vec<SocketAddrV4>,
    #[command(flatten)]
    device: Device,
    /// The longest IP packet on the way to the client; longer ones are sent in parts
    #[arg(long, value_name = "BYTES", default_value_t = 1500,
        value_parser = clap::value_parser!(u32).range(384..=i64::from(MAX_MTU)))]
    mtu: u32,
}

/// Arguments of a processor.
#[derive(Args)]
pub(crate) struct ProcessorArguments {
    #[command(flatten)]
    common: Common,
    /// The address of the client
    #[arg(long, value_name = "ADDRESS:PORT")]
    client: SocketAddrV4,
    /// Megabytes that the rows of epochs may take
    #[arg(long, value_name = "N", default_value_t = 4096)]
    memory: u64,
}

/// Arguments of the client.
#[derive(Args)]
pub(crate) struct ClientArguments {
    #[command(flatten)]
    common: Common,
    /// The address of the entry
    #[arg(long, value_name = "ADDRESS:PORT")]
    entry: SocketAddrV4,
    /// The address of a processor; once for each, in order
    #[arg(long, value_name = "ADDRESS:PORT", required = true)]
    processor: Vec<SocketAddrV4>,
    #[command(flatten)]
    device: Device,
    /// Packets that may wait for their datagrams
    #[arg(long, value_name = "N", default_value_t = 8192)]
    window: u32,
    /// How long a packet waits for its datagrams, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500)]
    timeout: u32,
    /// Seconds between epochs, where blinds are used again
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    rotation: u32,
    /// Datagrams of rows that go to each processor in a millisecond
    #[arg(long, value_name = "N", default_value_t = 32)]
    rows: u32,
}

/// Runs a party.
pub(crate) fn main(role: &Role) -> CommandResult {
    let (common, text) = match role {
        Role::Entry(it) => (&it.common, entry_text(it)?),
        Role::Processor(it) => (&it.common, processor_text(it)?),
        Role::Client(it) => (&it.common, client_text(it)?),
    };
    let text = match &common.control {
        Some(socket) => {
            let socket = quote(&socket.display().to_string());
            format!("{text}ControlSocket(UNIX, {socket});\n")
        }
        None => text,
    };
    if common.show {
        return write_out(None, &text);
    }
    let workers = common.workers.clone();
    run::main(&run::Arguments::of(Configuration::of(text), workers, common.quiet))
}

/// Checks that a file is of a party and of a setup with so many processors.
fn check(file: &Path, role: &str, processors: Option<usize>) -> CommandResult {
    let FileInfo { role: found, processors: count, .. } =
        party_file::inspect(file).map_err(|error| error.to_string())?;
    let is_right = match found {
        PartyRole::Entry => role == "entry",
        PartyRole::Processor(_) => role == "processor",
        PartyRole::Client => role == "client",
    };
    if !is_right {
        let (file, found) = (file.display(), found.of(count));
        return Err(format!("{file} is the file of {found}, not of the {role}").into());
    }
    match processors {
        Some(given) if given != usize::from(count) => Err(CommandError::usage(format!(
            "the setup of {} has {count} processors: --processor says where each of them is, \
             in order, and was given {given} times",
            file.display()
        ))),
        _ => Ok(()),
    }
}

/// The arguments of an element that name the party's file.
fn party(common: &Common) -> String {
    let path = |path: &Path| quote(&path.display().to_string());
    let key = match (&common.key_file, &common.passphrase_file) {
        (Some(key), _) => format!("KEY_FILE {}", path(key)),
        (None, phrase) => {
            format!("PASSPHRASE_FILE {}", path(phrase.as_deref().unwrap_or(Path::new(""))))
        }
    };
    format!("{}, {key}", path(&common.file))
}

/// The socket at which a party listens.
fn listener(common: &Common) -> String {
    let (address, port) = (common.listen.ip(), common.listen.port());
    format!("Socket(UDP, {address}, {port}, CLIENT false, RCVBUF 8388608, SNAPLEN {MAX_MTU})")
}

/// A socket that sends to another party.
fn sender(to: &SocketAddrV4) -> String {
    format!("Socket(UDP, {}, {}, CLIENT true)", to.ip(), to.port())
}

fn tun(device: &Device) -> String {
    let Device { device: name, address, device_mtu } = device;
    format!("KernelTun({address}, DEVNAME {name}, MTU {device_mtu})")
}

fn entry_text(arguments: &EntryArguments) -> Result<String, CommandError> {
    let EntryArguments { common, client, processor, device, mtu } = arguments;
    check(&common.file, "entry", Some(processor.len()))?;
    let mut text = format!(
        "entry :: SplitBoxEntry({}, MTU {mtu});\nhost :: {};\nhost -> entry;\n\
         {} -> [1] entry;\nentry[0] -> {};\n",
        party(common),
        tun(device),
        listener(common),
        sender(client)
    );
    for (number, address) in processor.iter().enumerate() {
        text += &format!("entry[{}] -> {};\n", number + 1, sender(address));
    }
    Ok(text)
}

fn processor_text(arguments: &ProcessorArguments) -> Result<String, CommandError> {
    let ProcessorArguments { common, client, memory } = arguments;
    check(&common.file, "processor", None)?;
    Ok(format!(
        "processor :: SplitBoxProcessor({}, MEMORY {memory});\n{} -> processor -> {};\n",
        party(common),
        listener(common),
        sender(client)
    ))
}

fn client_text(arguments: &ClientArguments) -> Result<String, CommandError> {
    let ClientArguments { common, entry, processor, device, window, timeout, rotation, rows } =
        arguments;
    check(&common.file, "client", Some(processor.len()))?;
    let mut text = format!(
        "client :: SplitBoxClient({}, WINDOW {window}, TIMEOUT {timeout}ms, ROTATION {rotation}s, \
         ROWS {rows});\nhost :: {};\nhost -> Discard;\n{} -> client -> host;\nclient[1] -> {};\n",
        party(common),
        tun(device),
        listener(common),
        sender(entry)
    );
    for (number, address) in processor.iter().enumerate() {
        text += &format!("client[{}] -> {};\n", number + 2, sender(address));
    }
    Ok(text)
}
