//! `ChatterSocket`: sends the messages of elements to other programs.

use super::bind_retries::BindRetries;
use crate::control::broadcast::BroadcastServer;
use crate::control::endpoint::Endpoint;
use castanet_element::control::ControlWaker;
use castanet_element::prelude::*;

/// Sends the messages that elements write to standard error to other programs.
///
/// `TCP, PORT` listens on a TCP port; a port such as `41900+` is the first free one
/// from that number. `UNIX, FILENAME` listens on a socket in the file system, which
/// the element makes and removes again. A client that connects receives a line
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
    /// The channel to send the lines of; all lines are on the default one.
    #[arg(keyword)]
    channel: Option<String>,
    /// Ignored: there are no messages on other channels.
    #[arg(keyword, default = true)]
    quiet_channel: bool,
    /// Whether a client receives the first line.
    #[arg(keyword, default = true)]
    greeting: bool,
    /// Number of retries, one a second, if the socket cannot be opened.
    #[arg(keyword, default = 0)]
    retries: u32,
    /// Whether to write a warning about each try that fails.
    #[arg(keyword, default = true)]
    retry_warnings: bool,
}

/// The open socket and its retries.
#[derive(Default, Local)]
pub struct ChatterSocketState {
    broadcast: Option<BroadcastServer>,
    retries: BindRetries,
    waker: Option<ControlWaker>,
}

impl Build for ChatterSocket {
    type Args = ChatterSocketArgs;

    fn build(settings: ChatterSocketArgs, _: &Setup) -> Result<Self, ArgError> {
        let place = Endpoint::parse(&settings.r#type, settings.place.as_deref(), false, false)?;
        _ = settings.quiet_channel;
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
        local.waker = Some(waker);
        local.retries.left = self.settings.retries;
        self.try_open(local)
    }

    fn step(
        &self,
        local: &mut ChatterSocketState,
        control: &mut dyn ControlContext,
    ) -> ProgramWait {
        if local.broadcast.is_none()
            && local.retries.is_due()
            && let Err(error) = self.try_open(local)
        {
            control.chatter(&format!("{}: {}\n", control.name(), control.words(&error)));
            control.request_stop();
            return ProgramWait::Ended;
        }
        if let Some(warning) = local.retries.warning.take() {
            control.chatter(&format!("{}: {warning}\n", control.name()));
        }
        match local.broadcast {
            Some(_) => ProgramWait::Notified,
            None => ProgramWait::At(control.now() + Duration::from_secs(1)),
        }
    }
}

impl ChatterSocket {
    /// Opens the socket; an error if that fails and no retry is left.
    fn try_open(&self, local: &mut ChatterSocketState) -> Result<(), ArgError> {
        let broadcast = match BroadcastServer::open(&self.place, self.settings.greeting) {
            Ok(broadcast) => broadcast,
            Err(error) => {
                return local.retries.record_failure(
                    &self.place,
                    &error,
                    self.settings.retry_warnings,
                );
            }
        };
        let is_default =
            self.settings.channel.as_deref().is_none_or(|it| matches!(it, "" | "default"));
        if let Some(waker) = local.waker.as_ref().filter(|_| is_default) {
            let broadcaster = broadcast.broadcaster();
            waker.subscribe(move |lines| broadcaster.send(lines));
        }
        local.broadcast = Some(broadcast);
        Ok(())
    }
}
