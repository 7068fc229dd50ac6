//! `ChatterSocket`: what elements say, for other programs to hear.

use super::bind_retries::BindRetries;
use crate::control::broadcast::BroadcastServer;
use crate::control::endpoint::Endpoint;
use castanet_element::control::ControlWaker;
use castanet_element::prelude::*;

/// Copies what elements write to standard error to other programs.
///
/// `TCP, PORT` listens to a TCP port; a port such as `41900+` means the next
/// free one from there on. `UNIX, FILENAME` listens to a socket in the file
/// system, which it makes and removes again. Who connects is greeted by a line
/// `Click::ChatterSocket/1.0`, and then hears every line that is written from
/// then on. A client that is 500 000 bytes behind is let go.
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

/// What can be set.
#[derive(Args)]
pub struct ChatterSocketArgs {
    /// `TCP` or `UNIX`.
    #[arg]
    r#type: String,
    /// The port, or the file.
    #[arg]
    place: Option<String>,
    /// Only lines for this channel; elements have but the default one.
    #[arg(keyword)]
    channel: Option<String>,
    /// Accepted: nothing is said on other channels.
    #[arg(keyword, default = true)]
    quiet_channel: bool,
    /// Whether clients are greeted.
    #[arg(keyword, default = true)]
    greeting: bool,
    /// How often to try again, once a second, if the socket cannot be had.
    #[arg(keyword, default = 0)]
    retries: u32,
    /// Whether to write a line about each try that fails.
    #[arg(keyword, default = true)]
    retry_warnings: bool,
}

/// The socket.
#[derive(Default, Local)]
pub struct ChatterSocketState {
    broadcast: Option<BroadcastServer>,
    retries: BindRetries,
    bell: Option<ControlWaker>,
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
        let said = |it: &ChatterSocket| (it.settings.channel.clone(), it.settings.greeting);
        self.place == before.place && said(self) == said(before)
    }

    fn init(&self, local: &mut ChatterSocketState, bell: ControlWaker) -> Result<(), ArgError> {
        local.bell = Some(bell);
        local.retries.left = self.settings.retries;
        self.try_open(local)
    }

    fn step(&self, local: &mut ChatterSocketState, desk: &mut dyn ControlContext) -> ProgramWait {
        if local.broadcast.is_none()
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
        match local.broadcast {
            Some(_) => ProgramWait::Notified,
            None => ProgramWait::At(desk.now() + Duration::from_secs(1)),
        }
    }
}

impl ChatterSocket {
    /// Opens the socket; an error if it cannot be had and no try is left.
    fn try_open(&self, local: &mut ChatterSocketState) -> Result<(), ArgError> {
        let broadcast = match BroadcastServer::open(&self.place, self.settings.greeting) {
            Ok(broadcast) => broadcast,
            Err(error) => {
                return local.retries.failed(&self.place, &error, self.settings.retry_warnings);
            }
        };
        let is_default =
            self.settings.channel.as_deref().is_none_or(|it| matches!(it, "" | "default"));
        if let Some(bell) = local.bell.as_ref().filter(|_| is_default) {
            let broadcaster = broadcast.broadcaster();
            bell.subscribe(move |lines| broadcaster.send(lines));
        }
        local.broadcast = Some(broadcast);
        Ok(())
    }
}
