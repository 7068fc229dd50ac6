//! `castanet tenants process`: the process of a tenant's own. `castanet tenants run` starts it, and people do not.
//!
//! It is two processes. The outer one makes namespaces, because a process namespace holds for children
//! only, and waits. The inner one opens channels and files, confines itself, and runs the graph. Standard
//! input of both is the connection to the parent.

use super::handler_answers::HandlerAnswers;
use super::heartbeat::Heartbeat;
use super::probe;
use crate::commands::{CommandError, CommandResult};
use crate::confine::tenant::{Separation, confine, restrict_calls, separate};
use crate::console::Terminal;
use crate::library::library;
use crate::load::{LoadedConfiguration, Origin, load};
use castanet_io::control::remote::CallSocket;
use castanet_runtime::router::{ErrorStyle, Options, Router, RunOutcome, Service};
use castanet_tenants::sandbox::{
    Inheritance, ProcessDescription, ProcessMessage, Protection, exit_words,
};
use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::time::Duration;

/// Frames for devices, where the memory is limited: a quarter of it in frames of 2304 bytes.
const BYTES_FOR_A_FRAME: u64 = 4 * 2304;
/// The fewest and the most of them.
const FRAMES: std::ops::RangeInclusive<u64> = 1024..=16384;

/// Arguments of `castanet tenants process`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Be the inner process
    #[arg(long)]
    inner: bool,
    /// With --inner, it has a user namespace already
    #[arg(long, requires = "inner")]
    user_namespace: bool,
}

/// The connection to the parent.
#[derive(Clone)]
pub(super) struct Parent(Arc<UnixStream>);

impl Parent {
    /// The connection that is standard input.
    fn from_stdin() -> io::Result<Parent> {
        let own = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Parent(Arc::new(UnixStream::from(own))))
    }

    /// A connection to somebody else.
    #[cfg(test)]
    pub(super) fn new(stream: UnixStream) -> Parent {
        Parent(Arc::new(stream))
    }

    /// Sends a message; without effect once the parent has gone.
    pub(super) fn tell(&self, message: &ProcessMessage) {
        _ = (&*self.0).write_all(format!("{}\n", message.line()).as_bytes());
    }

    /// Reports protections that the kernel does not give.
    fn tell_lacking(&self, lacking: Vec<(Protection, String)>) {
        for (protection, why) in lacking {
            self.tell(&ProcessMessage::Lacks(protection, why));
        }
    }

    /// Waits until the parent has sent something, or has gone.
    fn wait(&self) -> io::Result<()> {
        let mut wanted = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        poll(&mut wanted, PollTimeout::NONE)?;
        Ok(())
    }

    /// Whether the parent has gone.
    fn has_gone(&self) -> io::Result<bool> {
        let mut wanted = [PollFd::new(self.0.as_fd(), PollFlags::empty())];
        poll(&mut wanted, PollTimeout::ZERO)?;
        Ok(wanted[0].revents().is_some_and(|it| it.contains(PollFlags::POLLHUP)))
    }

    /// Waits until the parent closes its end, or goes.
    pub(super) fn wait_for_end(&self) {
        let mut byte = [0];
        while io::Read::read(&mut &*self.0, &mut byte).is_ok_and(|n| n > 0) {}
    }
}

/// Runs a process of a tenant.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let failed = |error: io::Error| format!("tenants process: {error}");
    let parent = Parent::from_stdin().map_err(failed)?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| failed(error.into()))?;
    // The end of a parent before that has sent no signal; the inner process would run on without the outer one.
    if parent.has_gone().map_err(failed)? {
        return Err(failed(io::ErrorKind::BrokenPipe.into()).into());
    }
    match arguments.inner {
        false => outer(&parent).map_err(|error| failed(error).into()),
        true => {
            parent.wait().map_err(failed)?;
            let inheritance = Inheritance::receive(&parent.0).map_err(failed)?;
            inner(&parent, inheritance, arguments.user_namespace)
        }
    }
}

/// Makes namespaces, runs the inner process in them, and waits for its end.
fn outer(parent: &Parent) -> io::Result<()> {
    // The parent has put this process into its groups by then.
    parent.wait()?;
    let Separation { has_user_namespace, lacking } = separate();
    parent.tell_lacking(lacking);
    let mut command = std::process::Command::new("/proc/self/exe");
    command.arg0("castanet").args(["tenants", "process", "--inner"]);
    command.args(has_user_namespace.then_some("--user-namespace"));
    // Files of the host that this process was given by mistake are none of the tenant's.
    castanet_io::descriptors::keep_from_programs()?;
    let mut inner = command.spawn()?;
    parent.tell(&ProcessMessage::Pid(inner.id()));
    crate::confine::give_up_privileges().map_err(io::Error::other)?;
    let status = inner.wait()?;
    parent.tell(&ProcessMessage::Ended(exit_words(status)));
    Ok(())
}

/// Opens channels and files, confines itself, and runs the graph.
fn inner(parent: &Parent, inheritance: Inheritance, has_user_namespace: bool) -> CommandResult {
    let Inheritance { description, calls, connections } = inheritance;
    for (name, connection) in description.channels.iter().zip(connections) {
        castanet_io::slots::pass(name, connection)
            .map_err(|error| format!("slot channel {name}: {error}"))?;
    }
    let mut router = build(&description)?;
    let mut confinement = confine(&description, has_user_namespace)?;
    if description.probe {
        probe::report(false)?;
    }
    restrict_calls(&mut confinement);
    let missing = confinement.lacking.iter().find(|it| description.require.contains(&it.0));
    if let Some((protection, why)) = missing {
        parent.tell(&ProcessMessage::Refused(format!("it requires {protection}: {why}")));
        return Err(CommandError::REPORTED);
    }
    parent.tell_lacking(confinement.lacking);
    if description.probe {
        return probe::report(true);
    }
    crate::messages::router_runs();
    let outcome = run(&mut router, parent, &description, calls, &confinement.holds.join(", "))?;
    match crate::commands::run::finish(router, outcome) {
        0 => Ok(()),
        status => Err(CommandError(status, None)),
    }
}

fn build(description: &ProcessDescription) -> Result<Router, CommandError> {
    let library = library();
    let mut loaded: LoadedConfiguration =
        load(&Origin::Expression(description.graph.clone()), &[], &library, None);
    let mut options = Options::new(Arc::new(Terminal));
    options.text = loaded.text.take();
    options.packages = crate::load::PACKAGES;
    if let Some(bytes) = description.memory {
        let frames = (bytes / BYTES_FOR_A_FRAME).clamp(*FRAMES.start(), *FRAMES.end());
        (options.frames, options.memory) = (Some(frames as usize), Some(bytes / 4));
    }
    let built = Router::build(&loaded.flat, &library, &options, &mut loaded.found);
    loaded.report(ErrorStyle::Castanet);
    built.ok_or(CommandError::REPORTED)
}

fn run(
    router: &mut Router,
    parent: &Parent,
    description: &ProcessDescription,
    calls: CallSocket,
    confinement: &str,
) -> Result<RunOutcome, String> {
    let interval = Duration::from_millis(description.interval);
    let mut heartbeat = Heartbeat::new(parent.clone(), interval, confinement);
    heartbeat.end_with(router).map_err(|error| format!("cannot wait for the parent: {error}"))?;
    let answers = HandlerAnswers::new(calls, router);
    let mut answers = answers.map_err(|error| format!("cannot answer about handlers: {error}"))?;
    let mut services: Vec<&mut dyn Service> = vec![&mut heartbeat, &mut answers];
    Ok(router.run_with(&mut services))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test it is an assertion.
mod tests {
    use super::*;

    #[test]
    fn a_parent_that_has_gone_is_noticed_though_its_message_waits() {
        let (mut parent, process) = UnixStream::pair().unwrap();
        let process = Parent::new(process);
        parent.write_all(b"description").unwrap();
        assert!(!process.has_gone().unwrap());
        // It asks for an end in good order by this.
        parent.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!process.has_gone().unwrap());
        drop(parent);
        assert!(process.has_gone().unwrap());
    }
}
