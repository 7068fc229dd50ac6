//! `ControlSocket`: lets other programs call handlers.

use super::server_slot::{RetryArgs, ServerSlot};
use crate::control::endpoint::Endpoint;
use crate::control::protocol::{self, SessionPolicy};
use crate::control::server::{CONTROL, ServerEvent};
use castanet_element::args::io_error_text;
use castanet_element::control::ControlWaker;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// Lets other programs call the router's handlers over a socket.
///
/// `TCP, PORT` listens on a TCP port: a number, or the name of a service. 0 is any free port, and
/// a port such as `41900+` the first free one from that number. `UNIX, FILENAME` listens on a
/// socket in the file system, which the element makes and removes again.
/// Commands are lines: `READ HANDLER
/// [PARAMETERS]`, `WRITE HANDLER [VALUE]`, `READDATA HANDLER N`, `WRITEDATA
/// HANDLER N`, `READUNTIL HANDLER END`, `WRITEUNTIL HANDLER END`, `CHECKREAD
/// HANDLER`, `LLRPC ELEMENT#NUMBER [N]`, `HELP`, `QUIT`. `SOCKET, FD` serves one
/// client, connected to a descriptor that the process was started with. HANDLER is
/// `ELEMENT.HANDLER`, `NUMBER.HANDLER`, or a global handler. The element answers a
/// command by one or more lines with a code: 2xx for success, 5xx for an error; the
/// value of a read handler follows a line `DATA N`, in N bytes. The answer to a write
/// to `hotconfig` comes when the new configuration runs.
///
/// With PROXY, handler `E.H` means `PROXY.E.H`: a `Script` of `TYPE PROXY`, for
/// example, answers for all elements.
///
/// Every program that can reach the port may write handlers, unless LOCALHOST or
/// READONLY forbid it, and `castanet run` warns of that; the permissions of the file
/// protect a `UNIX` socket. A web page can make a browser send requests to any port
/// of its machine: therefore the element closes a connection whose first line is no
/// command, or that sends any line of HTTP; it answers later lines that are no
/// commands with an error, as Click does.
///
/// 256 clients may be connected; a new client replaces one that has been idle for a minute. A
/// command has at most 16 MB, and the commands of all clients of all sockets together 64 MB,
/// including those that wait for their execution. At that limit the element reads no more until it
/// has answered some; if none is complete, the client with the longest command has three seconds
/// to send the rest of it. Answers wait until clients fetch them: beyond 128 MB the element
/// disconnects the client with the most bytes waiting.
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

/// The arguments of `ControlSocket`.
#[derive(Args)]
pub struct ControlSocketArgs {
    /// `TCP`, `UNIX` or `SOCKET`.
    #[arg]
    r#type: String,
    /// The port, the name of the file, or the descriptor.
    #[arg]
    place: Option<String>,
    /// The same by keyword, of a `TCP` socket.
    #[arg(keyword)]
    port: Option<String>,
    /// The same of a `UNIX` socket.
    #[arg(keyword)]
    filename: Option<String>,
    /// The same of type `SOCKET`.
    #[arg(keyword)]
    fd: Option<String>,
    /// The element whose handlers replace those of all others.
    #[arg(keyword)]
    proxy: Option<String>,
    /// Whether clients can only read handlers.
    #[arg(keyword, default = false)]
    readonly: bool,
    /// Whether to write a line about each client that connects or disconnects.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether only programs on this machine can reach the TCP port.
    #[arg(keyword, default = false)]
    localhost: bool,
    /// The retries.
    #[arg(flatten)]
    retry: RetryArgs,
}

/// The open socket, its clients and its retries.
#[derive(Default, Local)]
#[local(methods)]
pub struct ControlSocketState {
    slot: ServerSlot,
    /// Whether the element has checked that the proxy exists.
    proxy_checked: bool,
    /// Whether the element has warned that other machines can reach the port.
    warned: bool,
}

#[handlers]
impl ControlSocketState {
    /// The TCP port that the element listens on; empty if it has none.
    #[read]
    fn port(&self) -> String {
        let port = self.slot.server.as_ref().and_then(|server| server.port);
        port.map_or_else(String::new, |port| port.to_string())
    }

    /// The name of the file that the element listens on; empty if it has none.
    #[read]
    fn filename(&self) -> String {
        let path = self.slot.server.as_ref().and_then(|server| server.path.as_ref());
        path.map_or_else(String::new, |path| path.display().to_string())
    }
}

impl ControlSocketArgs {
    /// The address to listen on.
    fn endpoint(&self, names: &Names) -> Result<Endpoint, ArgError> {
        let places = [&self.place, &self.port, &self.filename, &self.fd];
        Endpoint::parse_one_of(&self.r#type, &places, self.localhost, true, names)
    }
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &ControlSocketArgs| {
        it.endpoint(names)
            .map_or_else(|_| Vec::new(), |place| place.resources("takes commands there"))
    })
}

impl Build for ControlSocket {
    type Args = ControlSocketArgs;

    fn build(settings: ControlSocketArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ControlSocket { place: settings.endpoint(setup.names)?, settings })
    }
}

impl Control for ControlSocket {
    type Local = ControlSocketState;

    fn can_take_state(&self, before: &ControlSocket) -> bool {
        self.place == before.place
    }

    fn references(&self) -> Vec<ProgramReference> {
        self.settings.proxy.iter().cloned().map(ProgramReference::Element).collect()
    }

    fn init(&self, local: &mut ControlSocketState, waker: ControlWaker) -> Result<(), ArgError> {
        local.slot.waker = Some(waker);
        self.try_open(local)
    }

    fn step(
        &self,
        local: &mut ControlSocketState,
        control: &mut dyn ControlContext,
    ) -> ProgramWait {
        let tried = if local.slot.is_due() { self.try_open(local) } else { Ok(()) };
        if !local.slot.report(tried, control) {
            return ProgramWait::Ended;
        }
        if let Some(proxy) = &self.settings.proxy
            && !std::mem::replace(&mut local.proxy_checked, true)
            && !control.exists(&format!("{proxy}.name"), false)
        {
            control.chatter(&format!("{}: PROXY: no element named '{proxy}'\n", control.name()));
            control.request_stop();
            return ProgramWait::Ended;
        }
        if !std::mem::replace(&mut local.warned, true) {
            self.warn(local, control);
        }
        let Some(server) = &mut local.slot.server else { return local.slot.wait(control) };
        if let Err(error) = server.serve() {
            control.chatter(&format!("{}: {}\n", control.name(), io_error_text(&error)));
            control.request_stop();
            return ProgramWait::Ended;
        }
        self.answer_commands(local, control)
    }
}

impl ControlSocket {
    /// Carries out the commands that have arrived, and answers them.
    fn answer_commands(
        &self,
        local: &mut ControlSocketState,
        control: &mut dyn ControlContext,
    ) -> ProgramWait {
        let own = [("port", local.port()), ("filename", local.filename())];
        let Some(server) = &mut local.slot.server else { return ProgramWait::Ended };
        if let Some((client, command, answer)) = server.deferred.take() {
            let errors = control.take_start_errors();
            let failed = protocol::start_failed(&command, &errors);
            server.answer(client, failed.unwrap_or(answer));
        }
        let name = control.name().to_owned();
        let own = |path: &str| {
            let handler = path.strip_prefix(&name)?.strip_prefix('.')?;
            own.iter().find(|(name, _)| *name == handler).map(|(_, value)| value.clone())
        };
        let proxy = self.settings.proxy.as_deref();
        let policy = SessionPolicy { read_only: self.settings.readonly, proxy, own: &own };
        while let Some(event) = server.next() {
            match event {
                ServerEvent::Command(client, command, share) => {
                    let answer = protocol::answer(&command, &policy, control);
                    drop(share);
                    if control.is_replaced() {
                        server.deferred = Some((client, command, answer));
                        return ProgramWait::At(control.now());
                    }
                    drop(command);
                    server.answer(client, answer);
                }
                ServerEvent::Log(text) => {
                    if self.settings.verbose {
                        control.chatter(&format!("{}: {text}\n", control.name()));
                    }
                }
            }
        }
        ProgramWait::Notified
    }

    /// Warns that other machines can call handlers; prints nothing where messages are Click's,
    /// because Click has no such warning.
    fn warn(&self, state: &ControlSocketState, control: &mut dyn ControlContext) {
        let Endpoint::Tcp { local: false, .. } = self.place else { return };
        let what = if self.settings.readonly { "read" } else { "write" };
        let text = format!("everybody who reaches TCP port {} can {what} handlers", state.port());
        let help = "LOCALHOST true keeps the port to this machine, UNIX makes a file of it";
        let said = control.words(&ArgError::new(text).help(help).click(""));
        if !said.is_empty() {
            control.chatter(&format!("{}: warning: {said}\n", control.name()));
        }
    }

    /// Opens the socket; an error if that fails and no retry is left.
    fn try_open(&self, local: &mut ControlSocketState) -> Result<(), ArgError> {
        local.slot.open(&self.place, CONTROL, &self.settings.retry).map(|_| ())
    }
}
