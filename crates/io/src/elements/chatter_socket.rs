//! `ChatterSocket`: sends the messages of elements to other programs.

use super::server_slot::{RetryArgs, ServerSlot};
use crate::control::endpoint::Endpoint;
use crate::control::server::{BROADCAST, Server, ServerPolicy};
use castanet_element::control::{ChatterChannel, ControlWaker};
use castanet_element::exec::DEFAULT_CHANNEL;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// Sends the messages that elements write to standard error to other programs.
///
/// `TCP, PORT` listens on a TCP port: a number, or the name of a service. 0 is any free port, and
/// a port such as `41900+` the first free one from that number. `UNIX, FILENAME` listens on a
/// socket in the file system, which the element makes and removes again.
/// A client that connects receives a line
/// `Click::ChatterSocket/1.0`, and then every line that elements write from then
/// on. The element disconnects a client that is 500 000 bytes behind.
///
/// ```text
/// ChatterSocket(UNIX, /run/chatter.sock); FromDevice(eth0) -> Print -> Discard
/// ```
#[derive(Element)]
#[element(args = ChatterSocketArgs)]
pub struct ChatterSocket {
    place: Endpoint,
    settings: ChatterSocketArgs,
}

/// The arguments of `ChatterSocket`.
#[derive(Args)]
pub struct ChatterSocketArgs {
    /// `TCP` or `UNIX`.
    #[arg]
    r#type: String,
    /// The port, or the name of the file.
    #[arg]
    place: Option<String>,
    /// The same by keyword, of a `TCP` socket.
    #[arg(keyword)]
    port: Option<String>,
    /// The same of a `UNIX` socket.
    #[arg(keyword)]
    filename: Option<String>,
    /// The channel to send the lines of, as `IPPrint` names it; the others are on the one named `default`.
    #[arg(keyword, default = DEFAULT_CHANNEL.to_owned(), shown = "default")]
    channel: String,
    /// Whether lines of another channel than the default one are not written to standard error, too.
    #[arg(keyword, default = true)]
    quiet_channel: bool,
    /// Whether a client receives the first line.
    #[arg(keyword, default = true)]
    greeting: bool,
    /// The retries.
    #[arg(flatten)]
    retry: RetryArgs,
}

impl ChatterSocketArgs {
    /// The address to listen on.
    fn endpoint(&self, names: &Names) -> Result<Endpoint, ArgError> {
        let places = [&self.place, &self.port, &self.filename];
        Endpoint::parse_one_of(&self.r#type, &places, false, false, names)
    }
}

/// The open socket and its retries.
#[derive(Default, Local)]
pub struct ChatterSocketState {
    slot: ServerSlot,
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &ChatterSocketArgs| {
        it.endpoint(names)
            .map_or_else(|_| Vec::new(), |place| place.resources("sends lines to clients there"))
    })
}

impl Build for ChatterSocket {
    type Args = ChatterSocketArgs;

    fn build(settings: ChatterSocketArgs, setup: &Setup) -> Result<Self, ArgError> {
        let place = settings.endpoint(setup.names)?;
        Ok(ChatterSocket { place, settings })
    }
}

impl Control for ChatterSocket {
    type Local = ChatterSocketState;

    fn can_take_state(&self, before: &ChatterSocket) -> bool {
        let arguments = |it: &ChatterSocket| (it.settings.channel.clone(), it.settings.greeting);
        self.place == before.place && arguments(self) == arguments(before)
    }

    fn init(&self, local: &mut ChatterSocketState, waker: ControlWaker) -> Result<(), ArgError> {
        local.slot.waker = Some(waker);
        self.try_open(local)
    }

    fn step(
        &self,
        local: &mut ChatterSocketState,
        control: &mut dyn ControlContext,
    ) -> ProgramWait {
        let mut tried = if local.slot.is_due() { self.try_open(local) } else { Ok(()) };
        if let (Ok(()), Some(server)) = (&tried, &mut local.slot.server) {
            // No thread runs before the first step: a confined process has none that is not confined.
            tried = server.serve().map_err(|error| ArgError::of_file(&self.place, &error));
        }
        match local.slot.report(tried, control) {
            true => local.slot.wait(control),
            false => ProgramWait::Ended,
        }
    }
}

impl ChatterSocket {
    /// Opens the socket; an error if that fails and no retry is left.
    fn try_open(&self, local: &mut ChatterSocketState) -> Result<(), ArgError> {
        let ChatterSocketArgs { channel, quiet_channel, greeting, retry, .. } = &self.settings;
        let greeting = if *greeting { BROADCAST.greeting } else { b"" };
        let policy = ServerPolicy { greeting, ..BROADCAST };
        let opened = local.slot.open(&self.place, policy, retry)?;
        if let Some(broadcaster) = opened.map(Server::broadcaster)
            && let Some(waker) = &local.slot.waker
        {
            let channel = ChatterChannel { name: channel.clone(), quiet: *quiet_channel };
            waker.subscribe(channel, move |lines| broadcaster.send(lines));
        }
        Ok(())
    }
}
