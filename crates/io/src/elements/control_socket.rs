//! `ControlSocket`: handlers for other programs to call.

use super::bind_retries::BindRetries;
use crate::control::endpoint::Endpoint;
use crate::control::protocol::{self, SessionPolicy};
use crate::control::server::{Server, ServerEvent};
use castanet_element::args::io_error_text;
use castanet_element::control::ControlWaker;
use castanet_element::prelude::*;

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
/// READONLY say otherwise, of which `castanet run` warns; the file of a `UNIX`
/// socket has permissions. A browser can be made to send requests to any port of
/// its machine: so a first line that is no command ends the connection, as does
/// any line of HTTP; later lines that are none are answered, as by Click.
///
/// 64 clients may be connected; one that has been idle for a minute makes room. A command has at
/// most 16 MB, those of all clients of all sockets together 64 MB, commands that wait to be
/// carried out included: more is not read before some of those are answered; where that would not
/// help, the client with the longest command has three seconds for the rest of it. Answers wait for
/// clients that fetch them: of more than 128 MB, the one for which most waits is let go.
///
/// ```text
/// ControlSocket(TCP, 7777, LOCALHOST true);
/// ControlSocket(UNIX, /run/router.sock);
/// ```
#[derive(Element)]
#[element(args = ControlSocketArgs)]
pub struct ControlSocket {
    place: Endpoint,
    settings: ControlSocketArgs,
}

/// What can be set.
#[derive(Args)]
pub struct ControlSocketArgs {
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
pub struct ControlSocketState {
    server: Option<Server>,
    bell: Option<ControlWaker>,
    retries: BindRetries,
    /// The file that it listens to.
    file: Option<String>,
    /// Whether it was seen that the proxy is there.
    proxy_is_known: bool,
    /// Whether the user was warned that others can reach it.
    warned: bool,
}

#[handlers]
impl ControlSocketState {
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
    type Args = ControlSocketArgs;

    fn build(settings: ControlSocketArgs, _: &Setup) -> Result<Self, ArgError> {
        let place =
            Endpoint::parse(&settings.r#type, settings.place.as_deref(), settings.localhost, true)?;
        Ok(ControlSocket { place, settings })
    }
}

impl Control for ControlSocket {
    type Local = ControlSocketState;

    fn can_take_state(&self, before: &ControlSocket) -> bool {
        self.place == before.place
    }

    fn init(&self, local: &mut ControlSocketState, bell: ControlWaker) -> Result<(), ArgError> {
        local.bell = Some(bell);
        local.retries.left = self.settings.retries;
        self.try_open(local)
    }

    fn step(&self, local: &mut ControlSocketState, desk: &mut dyn ControlContext) -> ProgramWait {
        if local.server.is_none()
            && local.retries.is_due()
            && let Err(error) = self.try_open(local)
        {
            desk.chatter(&format!("{}: {}\n", desk.name(), desk.words(&error)));
            desk.request_stop();
            return ProgramWait::Ended;
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
            return ProgramWait::Ended;
        }
        if !std::mem::replace(&mut local.warned, true) {
            self.warn(desk);
        }
        let Some(server) = &mut local.server else {
            return ProgramWait::At(desk.now() + Duration::from_secs(1));
        };
        if let Err(error) = server.serve() {
            desk.chatter(&format!("{}: {}\n", desk.name(), io_error_text(&error)));
            desk.request_stop();
            return ProgramWait::Ended;
        }
        let Some(server) = &local.server else { return ProgramWait::Ended };
        let own = [("port", local.port()), ("filename", local.filename())];
        let name = desk.name().to_owned();
        let own = |path: &str| {
            let handler = path.strip_prefix(&name)?.strip_prefix('.')?;
            own.iter().find(|(name, _)| *name == handler).map(|(_, value)| value.clone())
        };
        let proxy = self.settings.proxy.as_deref();
        let policy = SessionPolicy { read_only: self.settings.readonly, proxy, own: &own };
        while let Some(event) = server.next() {
            match event {
                ServerEvent::Command(client, command, share) => {
                    let answer = protocol::answer(&command, &policy, desk);
                    drop((command, share));
                    server.answer(client, answer);
                    if desk.is_replaced() {
                        return ProgramWait::At(desk.now());
                    }
                }
                ServerEvent::Log(text) => {
                    if self.settings.verbose {
                        desk.chatter(&format!("{}: {text}\n", desk.name()));
                    }
                }
            }
        }
        ProgramWait::Notified
    }
}

impl ControlSocket {
    /// Says that others than this machine's users can write handlers; not in Click's words, as it
    /// does not.
    fn warn(&self, desk: &mut dyn ControlContext) {
        let Endpoint::Tcp { local: false, .. } = self.place else { return };
        let what = if self.settings.readonly { "read" } else { "write" };
        let text = format!("everybody who reaches {} can {what} handlers", self.place);
        let help = "LOCALHOST true keeps the port to this machine, UNIX makes a file of it";
        let said = desk.words(&ArgError::new(text).help(help).click(""));
        if !said.is_empty() {
            desk.chatter(&format!("{}: warning: {said}\n", desk.name()));
        }
    }

    /// Opens the socket; an error if it cannot be had and no try is left.
    fn try_open(&self, local: &mut ControlSocketState) -> Result<(), ArgError> {
        let Some(bell) = local.bell.clone() else { return Ok(()) };
        let error = match Server::open(&self.place, bell) {
            Ok(server) => {
                local.server = Some(server);
                if let Endpoint::Unix(path) = &self.place {
                    local.file = Some(path.display().to_string());
                }
                return Ok(());
            }
            Err(error) => error,
        };
        local.retries.failed(&self.place, &error, self.settings.retry_warnings)
    }
}
