//! `ControlSocket`: handlers for other programs to call.

use super::retried::Retries;
use crate::control::place::Place;
use crate::control::protocol::{self, Manners};
use crate::control::server::{Heard, Server};
use castanet_engine::prelude::*;
use castanet_engine::router::Bell;

/// Lets other programs call the router's handlers over a socket.
///
/// `TCP, PORT` listens to a TCP port; a port such as `41900+` means the next
/// free one from there on. `UNIX, FILENAME` listens to a socket in the file
/// system, which it makes and removes again. Commands are lines: `READ HANDLER
/// [PARAMETERS]`, `WRITE HANDLER [VALUE]`, `READDATA HANDLER N`, `WRITEDATA
/// HANDLER N`, `READUNTIL HANDLER END`, `WRITEUNTIL HANDLER END`, `CHECKREAD
/// HANDLER`, `LLRPC ELEMENT#NUMBER [N]`, `HELP`, `QUIT`. `SOCKET, FD` is one
/// client, connected to a descriptor that the process was started with. HANDLER is
/// `ELEMENT.HANDLER`, `NUMBER.HANDLER`, or a global handler. Each is answered
/// by one or more lines with a code: 2xx if it was done, 5xx if not; what was
/// read follows a line `DATA N`, in N bytes.
///
/// With PROXY, handler `E.H` means `PROXY.E.H`: a `Script` of `TYPE PROXY`, say,
/// answers for all elements.
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
    /// `TCP`, `UNIX` or `SOCKET`.
    #[arg]
    r#type: String,
    /// The port, the file, or the descriptor.
    #[arg]
    place: Option<String>,
    /// The element whose handlers stand for those of all others.
    #[arg(keyword)]
    proxy: Option<String>,
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
    retries: Retries,
    /// The file that it listens to.
    file: Option<String>,
    /// Whether it was seen that the proxy is there.
    proxy_is_known: bool,
}

#[handlers]
impl Listening {
    /// The TCP port that it listens to; empty if it has none.
    #[read]
    fn port(&self) -> String {
        let port = self.server.as_ref().and_then(|server| server.port);
        port.map_or_else(String::new, |port| port.to_string())
    }

    /// The file that it listens to; empty if it has none.
    #[read]
    fn filename(&self) -> String {
        self.file.clone().unwrap_or_default()
    }
}

impl Build for ControlSocket {
    type Args = Settings;

    fn build(settings: Settings, _: &Setup) -> Result<Self, ArgError> {
        let place =
            Place::of(&settings.r#type, settings.place.as_deref(), settings.localhost, true)?;
        Ok(ControlSocket { place, settings })
    }
}

impl Control for ControlSocket {
    type Local = Listening;

    fn continues(&self, before: &ControlSocket) -> bool {
        self.place == before.place
    }

    fn begin(&self, local: &mut Listening, bell: Bell) -> Result<(), ArgError> {
        local.bell = Some(bell);
        local.retries.left = self.settings.retries;
        self.try_open(local)
    }

    fn step(&self, local: &mut Listening, desk: &mut dyn Desk) -> Step {
        if local.server.is_none()
            && local.retries.is_due()
            && let Err(error) = self.try_open(local)
        {
            desk.chatter(&format!("{}: {}\n", desk.name(), desk.words(&error)));
            desk.request_stop();
            return Step::Ended;
        }
        if let Some(warning) = local.retries.warning.take() {
            desk.chatter(&format!("{}: {warning}\n", desk.name()));
        }
        if let Some(proxy) = &self.settings.proxy
            && !std::mem::replace(&mut local.proxy_is_known, true)
            && !desk.exists(&format!("{proxy}.name"), false)
        {
            desk.chatter(&format!("{}: PROXY: no element named '{proxy}'\n", desk.name()));
            desk.request_stop();
            return Step::Ended;
        }
        let Some(server) = &local.server else {
            return Step::At(desk.now() + Duration::from_secs(1));
        };
        let own = [("port", local.port()), ("filename", local.filename())];
        let name = desk.name().to_owned();
        let own = |path: &str| {
            let handler = path.strip_prefix(&name)?.strip_prefix('.')?;
            own.iter().find(|(name, _)| *name == handler).map(|(_, value)| value.clone())
        };
        let proxy = self.settings.proxy.as_deref();
        let manners = Manners { read_only: self.settings.readonly, proxy, own: &own };
        while let Some(heard) = server.next() {
            match heard {
                Heard::Command(client, command) => {
                    let answer = protocol::answer(&command, &manners, desk);
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
                if let Place::Unix(path) = &self.place {
                    local.file = Some(path.display().to_string());
                }
                return Ok(());
            }
            Err(error) => error,
        };
        local.retries.failed(&self.place, &error, self.settings.retry_warnings)
    }
}
