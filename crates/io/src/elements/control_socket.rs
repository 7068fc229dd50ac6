//! `ControlSocket`: handlers for other programs to call.

use crate::control::protocol;
use crate::control::server::{Heard, Place, Server};
use castanet_engine::prelude::*;
use castanet_engine::router::Bell;
use std::path::PathBuf;

/// Lets other programs call the router's handlers over a socket.
///
/// `TCP, PORT` listens to a TCP port; a port such as `41900+` means the next
/// free one from there on. `UNIX, FILENAME` listens to a socket in the file
/// system, which it makes and removes again. Commands are lines: `READ HANDLER
/// [PARAMETERS]`, `WRITE HANDLER [VALUE]`, `READDATA HANDLER N`, `WRITEDATA
/// HANDLER N`, `READUNTIL HANDLER END`, `WRITEUNTIL HANDLER END`, `CHECKREAD
/// HANDLER`, `CHECKWRITE HANDLER`, `HELP`, `QUIT`. HANDLER is
/// `ELEMENT.HANDLER`, `NUMBER.HANDLER`, or a global handler. Each is answered
/// by one or more lines with a code: 2xx if it was done, 5xx if not; what was
/// read follows a line `DATA N`, in N bytes.
///
/// Everybody who can reach the port may write handlers, unless LOCALHOST or
/// READONLY say otherwise; the file of a `UNIX` socket has permissions.
///
/// ```text
/// ControlSocket(TCP, 7777, LOCALHOST true);
/// ControlSocket(UNIX, /run/router.sock);
/// ```
#[derive(Element)]
#[element(args = Settings)]
pub struct ControlSocket {
    place: Place,
    settings: Settings,
}

/// What can be set.
#[derive(Args)]
pub struct Settings {
    /// `TCP` or `UNIX`.
    #[arg]
    r#type: String,
    /// The port, or the file.
    #[arg]
    place: String,
    /// Whether handlers can only be read.
    #[arg(keyword, default = false)]
    readonly: bool,
    /// Whether to write a line about each client that comes or goes.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether only this machine's programs can reach the TCP port.
    #[arg(keyword, default = false)]
    localhost: bool,
    /// How often to try again, once a second, if the socket cannot be had.
    #[arg(keyword, default = 0)]
    retries: u32,
    /// Whether to write a line about each try that fails.
    #[arg(keyword, default = true)]
    retry_warnings: bool,
}

/// The socket.
#[derive(Default, Local)]
#[local(methods)]
pub struct Listening {
    server: Option<Server>,
    bell: Option<Bell>,
    /// It has been tried before the router ran.
    just_tried: bool,
    /// Tries that failed.
    failed: u32,
    /// What is to be written when it can be.
    warning: Option<String>,
}

#[handlers]
impl Listening {
    /// The TCP port that it listens to; empty if it has none.
    #[read]
    fn port(&self) -> String {
        let port = self.server.as_ref().and_then(|server| server.port);
        port.map_or_else(String::new, |port| port.to_string())
    }
}

impl Build for ControlSocket {
    type Args = Settings;

    fn build(settings: Settings, _: &Setup) -> Result<Self, ArgError> {
        let place = match settings.r#type.to_ascii_uppercase().as_str() {
            "TCP" => tcp(&settings)?,
            "UNIX" if settings.place.len() >= LONGEST_PATH => {
                return Err(ArgError::new("filename too long")
                    .help(format!("a socket's may have {} bytes", LONGEST_PATH - 1)));
            }
            "UNIX" => Place::Unix(PathBuf::from(&settings.place)),
            _ => {
                return Err(ArgError::new(format!("unknown socket type '{}'", settings.r#type))
                    .help("TYPE is TCP or UNIX"));
            }
        };
        Ok(ControlSocket { place, settings })
    }
}

/// What `struct sockaddr_un` has room for.
const LONGEST_PATH: usize = 108;

fn tcp(settings: &Settings) -> Result<Place, ArgError> {
    let text = settings.place.as_str();
    let (number, or_next) = text.strip_suffix('+').map_or((text, false), |number| (number, true));
    let port = number.parse().ok().filter(|&port: &u16| port > 0);
    let wrong = || ArgError::new("PORT requires TCP port").help("a number from 1 to 65535");
    Ok(Place::Tcp { port: port.ok_or_else(wrong)?, or_next, local: settings.localhost })
}

impl Control for ControlSocket {
    type Local = Listening;

    fn continues(&self, before: &ControlSocket) -> bool {
        self.place == before.place
    }

    fn begin(&self, local: &mut Listening, bell: Bell) -> Result<(), ArgError> {
        local.bell = Some(bell);
        local.just_tried = true;
        self.try_open(local)
    }

    fn step(&self, local: &mut Listening, desk: &mut dyn Desk) -> Step {
        if local.server.is_none()
            && !std::mem::take(&mut local.just_tried)
            && let Err(error) = self.try_open(local)
        {
            let words = error.in_click_words().unwrap_or_default();
            desk.chatter(&format!("{}: {words}\n", desk.name()));
            desk.request_stop();
            return Step::Ended;
        }
        if let Some(warning) = local.warning.take() {
            desk.chatter(&format!("{}: {warning}\n", desk.name()));
        }
        let Some(server) = &local.server else {
            return Step::At(desk.now() + Duration::from_secs(1));
        };
        let (port, own) = (local.port(), format!("{}.port", desk.name()));
        let own = |path: &str| (path == own).then(|| port.clone());
        while let Some(heard) = server.next() {
            match heard {
                Heard::Command(client, command) => {
                    let answer = protocol::answer(&command, self.settings.readonly, &own, desk);
                    server.answer(client, answer);
                    if desk.is_replaced() {
                        return Step::At(desk.now());
                    }
                }
                Heard::News(text) => {
                    if self.settings.verbose {
                        desk.chatter(&format!("{}: {text}\n", desk.name()));
                    }
                }
            }
        }
        Step::Prodded
    }
}

impl ControlSocket {
    /// Opens the socket; an error if it cannot be had and no try is left.
    fn try_open(&self, local: &mut Listening) -> Result<(), ArgError> {
        let Some(bell) = local.bell.clone() else { return Ok(()) };
        let error = match Server::open(&self.place, bell) {
            Ok(server) => {
                local.server = Some(server);
                return Ok(());
            }
            Err(error) => error,
        };
        let where_to = match &self.place {
            Place::Tcp { port, .. } => format!("TCP port {port}"),
            Place::Unix(path) => path.display().to_string(),
        };
        // As the C library says it, without Rust's number.
        let why = error.to_string();
        let why = why.split(" (os error").next().unwrap_or_default().to_owned();
        let left = self.settings.retries.saturating_sub(local.failed);
        if left == 0 {
            return Err(ArgError::new(format!("cannot listen at {where_to}: {why}"))
                .click(format!("bind: {why}")));
        }
        local.failed += 1;
        if self.settings.retry_warnings {
            let tries = if left == 1 { "try" } else { "tries" };
            local.warning = Some(format!("warning: bind: {why} ({left} {tries} left)"));
        }
        Ok(())
    }
}
