//! `castanet middlebox`: a bridge or router of two interfaces that applies rules, and its clients.

mod check;
mod client;
mod route;
mod shell;

pub(super) use client::obey_on;

use super::{CommandError, CommandResult, write_out};
use crate::cli::{Configuration, Workers};
use crate::instance::HttpArguments;
use castanet_lang::args::{quote, quote_if_needed};
use clap::Args;
use route::{InterfaceAddress, NamedInterface, ROUTER, Routes, side};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Arguments of `castanet middlebox`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The interface on the one side
    #[arg(long = "in", value_name = "IF", requires = "output")]
    input: Option<String>,
    /// The interface on the other side
    #[arg(long = "out", value_name = "IF", requires = "input")]
    output: Option<String>,
    /// Route, with this address on the one side; once for IPv4 and once for IPv6
    #[arg(long, value_name = "ADDRESS/LENGTH", requires = "out_address")]
    in_address: Vec<InterfaceAddress>,
    /// The address on the other side
    #[arg(long, value_name = "ADDRESS/LENGTH", requires = "in_address")]
    out_address: Vec<InterfaceAddress>,
    /// One of two or more interfaces, with its addresses if the middlebox routes; instead of --in and --out
    #[arg(
        long,
        short = 'i',
        value_name = "IF[=ADDRESS/LENGTH,…]",
        conflicts_with_all = ["input", "output"]
    )]
    interface: Vec<NamedInterface>,
    #[arg(
        long,
        value_name = "ADDRESS",
        help = "Who forwards what is for no network of an interface"
    )]
    gateway: Vec<IpAddr>,
    /// Listen for commands at this socket in the file system
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// How many connections there may be
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    connections: usize,
    /// The longest IP packet that TCP options may be added to
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    mtu: usize,
    /// Export connections by IPFIX to the collector at this address and port
    #[arg(long, value_name = "ADDRESS")]
    collector: Option<String>,
    /// Export connections that go on after this time, such as 60s
    #[arg(long, value_name = "TIME", requires = "collector")]
    active_timeout: Option<String>,
    /// Append the packets that rules log to this pcapng file, too
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Packets of a rule that a worker logs in a second at most; 0 for all [default: 10]
    #[arg(long, value_name = "N")]
    log_rate: Option<u64>,
    /// How packets are received: AF_XDP, AF_PACKET and so on, as FromDevice has it
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    #[command(flatten)]
    http: HttpArguments,
    #[command(flatten)]
    workers: Workers,
    /// Say neither how packets come and go nor that it runs
    #[arg(short, long)]
    quiet: bool,
    /// Only say whether the rules are right, and everything that is wrong
    #[arg(long, conflicts_with_all = ["input", "interface", "connect"])]
    check: bool,
    /// Print the configuration in the Click language, and run nothing
    #[arg(long)]
    show: bool,
    /// Talk to one that runs and listens there: a command, or, without one, as many as there are lines
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["input", "interface"])]
    connect: Option<PathBuf>,
    /// Let `load` and `save` open files below this folder (may be repeated) [default: that of the
    /// file of rules, or the current one]
    #[arg(long, value_name = "DIR")]
    handler_files: Vec<PathBuf>,
    /// With --connect: `list` and `show connections` print JSON
    #[arg(long)]
    json: bool,
    /// A file of rules, or `check` and files of rules; with --connect, the words of a command
    #[arg(value_name = "FILE or COMMAND")]
    words: Vec<String>,
}

/// Runs a middlebox, or talks to one.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    if let Some(option) = arguments.wanting_interfaces() {
        return Err(CommandError::usage(format!("{option} wants --in and --out, or --interface")));
    }
    if let Some(socket) = &arguments.connect {
        let json = if arguments.json { " --json" } else { "" };
        return shell::main(socket, &(arguments.words.join(" ") + json));
    }
    if arguments.json {
        return Err(CommandError::usage("--json wants --connect".into()));
    }
    if let Some(files) = files_to_check(arguments) {
        return check::main(files);
    }
    let interfaces = arguments.interfaces().map_err(CommandError::usage)?;
    let file = match arguments.words.as_slice() {
        [] => None,
        [file] => Some(Path::new(file)),
        [_, extra, ..] => {
            let message = format!("'{extra}' is one file of rules too many");
            return Err(CommandError::usage(message));
        }
    };
    if let Some(false) = file.map(|file| check::is_right(file, false)) {
        return Err(CommandError::REPORTED);
    }
    let text = configuration(arguments, &interfaces, file).map_err(CommandError::usage)?;
    if arguments.show {
        return write_out(None, &text);
    }
    let configuration = Configuration::of(text);
    let workers = arguments.workers.clone();
    let mut run = super::run::Arguments::of(configuration, workers, arguments.quiet);
    run.instance.http = arguments.http.clone();
    run.handler_files.clone_from(&arguments.handler_files);
    if run.handler_files.is_empty() {
        let folder = file.and_then(Path::parent).filter(|it| !it.as_os_str().is_empty());
        run.handler_files.push(folder.unwrap_or(Path::new(".")).to_owned());
    }
    super::run::main(&run)
}

/// The files that are only checked; `None` if the command is another.
fn files_to_check(arguments: &Arguments) -> Option<&[String]> {
    match arguments.words.split_first() {
        Some((first, files)) if first == "check" && !arguments.has_interfaces() => Some(files),
        _ => arguments.check.then_some(&arguments.words[..]),
    }
}

impl Arguments {
    /// Whether they name an interface.
    fn has_interfaces(&self) -> bool {
        self.input.is_some() || !self.interface.is_empty()
    }

    /// An option that means nothing without interfaces, if there are none.
    fn wanting_interfaces(&self) -> Option<&'static str> {
        let options = [
            (self.show, "--show"),
            (self.control.is_some(), "--control"),
            (self.collector.is_some(), "--collector"),
            (self.log_file.is_some(), "--log-file"),
            (!self.gateway.is_empty(), "--gateway"),
        ];
        let own = options.iter().find(|(is_there, _)| *is_there).map(|(_, name)| *name);
        self.http.wanted().or(own).filter(|_| !self.has_interfaces())
    }

    /// The interfaces, two or more, with their addresses.
    fn interfaces(&self) -> Result<Vec<NamedInterface>, String> {
        let ends = [(&self.input, &self.in_address), (&self.output, &self.out_address)];
        let named = ends.into_iter().filter_map(|(name, addresses)| {
            Some(NamedInterface { name: name.clone()?, addresses: addresses.clone() })
        });
        let all: Vec<NamedInterface> = named.chain(self.interface.iter().cloned()).collect();
        if all.len() < 2 {
            let form = "--in IF --out IF, or --interface IF for each";
            return Err(format!(
                "two interfaces are missing: {form}; or `check FILE`, or --connect SOCKET"
            ));
        }
        for (at, interface) in all.iter().enumerate() {
            let name = &interface.name;
            if !self.show && all[..at].iter().any(|other| other.name == *name) {
                return Err(match self.input {
                    Some(_) => "--in and --out are the same interface".into(),
                    None => format!("{name} is there twice"),
                });
            }
            if all.len() > 2 && name == ROUTER {
                return Err(format!("`{name}` is the name of the router itself in rules"));
            }
        }
        if !self.gateway.is_empty() && all.iter().all(|it| it.addresses.is_empty()) {
            return Err(
                "--gateway is for interfaces with addresses, such as lan=10.0.1.1/24".into()
            );
        }
        Ok(all)
    }
}

/// The names of the interfaces by which packets come in and leave, on each path through the rules.
fn paths(interfaces: &[NamedInterface], is_bridge: bool) -> Vec<[String; 2]> {
    let names: Vec<String> = interfaces.iter().map(|it| quote_if_needed(&it.name)).collect();
    let to = |from: &String| {
        let others = names.iter().filter(|to| !is_bridge || *to != from).cloned();
        others.chain((!is_bridge).then(|| ROUTER.to_owned())).collect::<Vec<_>>()
    };
    match &names[..] {
        [near, far] => vec![[near.clone(), far.clone()], [far.clone(), near.clone()]],
        _ => names
            .iter()
            .flat_map(|from| to(from).into_iter().map(|to| [from.clone(), to]))
            .collect(),
    }
}

/// The element `rules`.
fn rules_text(
    arguments: &Arguments,
    interfaces: &[NamedInterface],
    file: Option<&Path>,
    forwarding: &str,
) -> String {
    let file = file.map(|path| format!("FILE {}, ", quote(&path.display().to_string())));
    let (connections, mtu) = (arguments.connections, arguments.mtu);
    let log_file = arguments.log_file.as_ref().map(|path| path.display().to_string());
    let log_rate = arguments.log_rate.map(|rate| rate.to_string());
    let paths = paths(interfaces, forwarding == "bridge");
    let side = |at: usize| paths.iter().map(|path| path[at].as_str()).collect::<Vec<_>>().join(" ");
    let (input, out) = (side(0), (interfaces.len() > 2).then(|| side(1)));
    let own = interfaces.iter().flat_map(|it| {
        it.addresses.iter().map(|own| quote_if_needed(&format!("{}={}", it.name, own.address)))
    });
    let own = own.collect::<Vec<_>>().join(" ");
    let addresses = Some(own).filter(|own| !own.is_empty()).map(|own| format!(", ADDRESSES {own}"));
    let optional = [
        ("COLLECTOR", &arguments.collector),
        ("ACTIVE_TIMEOUT", &arguments.active_timeout),
        ("LOG_FILE", &log_file),
        ("LOG_RATE", &log_rate),
    ];
    let optional = optional
        .map(|(name, value)| value.as_ref().map(|it| format!(", {name} {}", quote_if_needed(it))));
    let optional: String = optional.into_iter().flatten().collect();
    let out = out.map(|out| format!(", OUT {out}")).unwrap_or_default();
    format!(
        "rules :: Middlebox({}INTERFACES {input}{out}{}, FORWARDING {forwarding}, \
         CONNECTIONS {connections}, MTU {mtu}{optional});\n",
        file.unwrap_or_default(),
        addresses.unwrap_or_default()
    )
}

/// The configuration that the arguments come to.
fn configuration(
    arguments: &Arguments,
    interfaces: &[NamedInterface],
    file: Option<&Path>,
) -> Result<String, String> {
    let method = arguments.method.as_ref().map(|method| format!(", METHOD {method}"));
    let method = method.unwrap_or_default();
    let is_bridge = interfaces.iter().all(|it| it.addresses.is_empty());
    let forwarding = if is_bridge { "bridge" } else { "router" };
    let mut text = rules_text(arguments, interfaces, file, forwarding);
    for (n, interface) in interfaces.iter().enumerate() {
        let name = quote_if_needed(&interface.name);
        let side = side(n, interfaces.len());
        text +=
            &format!("from_{side} :: FromDevice({name}, PROMISC true, SNIFFER false{method});\n");
        text += &format!("to_{side} :: ToDevice({name}{method});\n");
    }
    text += &match interfaces.len() {
        2 if is_bridge => {
            "from_in -> rules -> to_out;\nfrom_out -> [1] rules [1] -> to_in;\n".to_owned()
        }
        count if is_bridge => bridge(count),
        _ => {
            let routes = Routes::new(interfaces, &arguments.gateway)?;
            let name = |it: &NamedInterface| quote_if_needed(&format!("{}:eth", it.name));
            let ethers: Vec<String> = interfaces.iter().map(name).collect();
            routes.text(&ethers, arguments.mtu)
        }
    };
    if let Some(socket) = &arguments.control {
        let socket = quote(&socket.display().to_string());
        text += &format!("ControlSocket(UNIX, {socket});\n");
    }
    Ok(text)
}

/// A bridge of more than two interfaces: a switch finds the path of each frame, which the rules then have.
fn bridge(count: usize) -> String {
    let mut text = "switch :: EtherSwitch;\n".to_owned();
    for n in 0..count {
        text += &format!("from_{n} -> Paint({n}) -> [{n}] switch;\n");
        text += &format!("switch[{n}] -> came{n} :: PaintSwitch;\n");
        // No frame leaves by the interface that it came from.
        text += &format!("came{n}[{n}] -> Discard;\n");
    }
    let paths = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    for (path, (from, to)) in paths.filter(|(from, to)| from != to).enumerate() {
        text += &format!("came{to}[{from}] -> [{path}] rules [{path}] -> to_{to};\n");
    }
    text
}
