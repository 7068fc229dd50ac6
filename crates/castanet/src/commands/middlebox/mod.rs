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
use route::{InterfaceAddress, Routes};
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
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "in_address",
        help = "Who forwards what is for neither network"
    )]
    gateway: Vec<IpAddr>,
    /// Listen for commands at this socket in the file system
    #[arg(long, value_name = "SOCKET", requires = "input")]
    control: Option<PathBuf>,
    /// How many connections there may be
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    connections: usize,
    /// The longest IP packet that TCP options may be added to
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    mtu: usize,
    /// Export connections by IPFIX to the collector at this address and port
    #[arg(long, value_name = "ADDRESS", requires = "input")]
    collector: Option<String>,
    /// Export connections that go on after this time, such as 60s
    #[arg(long, value_name = "TIME", requires = "collector")]
    active_timeout: Option<String>,
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
    #[arg(long, conflicts_with_all = ["input", "connect"])]
    check: bool,
    /// Print the configuration in the Click language, and run nothing
    #[arg(long, requires = "input")]
    show: bool,
    /// Talk to one that runs and listens there: a command, or, without one, as many as there are lines
    #[arg(long, value_name = "SOCKET", conflicts_with = "input")]
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
    if let (Some(option), None) = (arguments.http.wanted(), &arguments.input) {
        return Err(CommandError::usage(format!("{option} wants --in and --out")));
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
    if arguments.input.is_none() {
        let message =
            "two interfaces are missing: --in IF --out IF; or `check FILE`, or --connect SOCKET";
        return Err(CommandError::usage(message.into()));
    }
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
    let text = configuration(arguments, file).map_err(CommandError::usage)?;
    if arguments.show {
        return write_out(None, &text);
    }
    if arguments.input == arguments.output {
        return Err(CommandError::usage("--in and --out are the same interface".into()));
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
        Some((first, files)) if first == "check" && arguments.input.is_none() => Some(files),
        _ => arguments.check.then_some(&arguments.words[..]),
    }
}

/// The configuration that the arguments come to.
fn configuration(arguments: &Arguments, file: Option<&Path>) -> Result<String, String> {
    let [input, output] = [&arguments.input, &arguments.output]
        .map(|name| quote_if_needed(name.as_deref().unwrap_or_default()));
    let file = file.map(|path| format!("FILE {}, ", quote(&path.display().to_string())));
    let method = arguments.method.as_ref().map(|method| format!(", METHOD {method}"));
    let (file, method) = (file.unwrap_or_default(), method.unwrap_or_default());
    let (connections, mtu) = (arguments.connections, arguments.mtu);
    let export =
        [("COLLECTOR", &arguments.collector), ("ACTIVE_TIMEOUT", &arguments.active_timeout)].map(
            |(name, value)| value.as_ref().map(|it| format!(", {name} {}", quote_if_needed(it))),
        );
    let export: String = export.into_iter().flatten().collect();
    let forwarding = if arguments.in_address.is_empty() { "bridge" } else { "router" };
    let rules = format!(
        "rules :: Middlebox({file}INTERFACES {input} {output}, FORWARDING {forwarding}, \
         CONNECTIONS {connections}, MTU {mtu}{export});\n"
    );
    let from_in = format!("from_in :: FromDevice({input}, PROMISC true, SNIFFER false{method})");
    let from_out = format!("from_out :: FromDevice({output}, PROMISC true, SNIFFER false{method})");
    let to_in = format!("to_in :: ToDevice({input}{method})");
    let to_out = format!("to_out :: ToDevice({output}{method})");
    let mut text = if arguments.in_address.is_empty() {
        format!(
            "{rules}{from_in}\n    -> rules -> {to_out};\n\
             {from_out}\n    -> [1] rules [1] -> {to_in};\n"
        )
    } else {
        let own = [&arguments.in_address[..], &arguments.out_address];
        let routes = Routes::new(own, &arguments.gateway)?;
        let ethers = [format!("{input}:eth"), format!("{output}:eth")];
        let path = routes.text([&ethers[0], &ethers[1]], mtu);
        format!("{rules}{from_in};\n{from_out};\n{to_in};\n{to_out};\n{path}")
    };
    if let Some(socket) = &arguments.control {
        let socket = quote(&socket.display().to_string());
        text += &format!("ControlSocket(UNIX, {socket});\n");
    }
    Ok(text)
}
