//! The address at which other instances hand tenants over.

use super::arrival;
use super::channel::SecureChannel;
use super::key::MigrationKey;
use crate::control_queue::ControlSender;
use crate::instance::InstanceService;
use crate::load::io_error_text;
use crate::terminal::{complain, inform};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Connections at a time.
const MOST_CONNECTIONS: usize = 8;
/// Time after a connection that could not be accepted, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A listener, on a thread of its own until it is dropped.
pub(crate) struct MigrationListener {
    /// The address.
    pub(crate) address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MigrationListener {
    /// Listens for instances that have the key.
    ///
    /// # Errors
    /// Nobody can listen at the address.
    pub(crate) fn start(
        address: SocketAddr,
        key: MigrationKey,
        control: ControlSender<InstanceService>,
    ) -> Result<MigrationListener, String> {
        let failed = |error: io::Error| format!("{address}: {}", io_error_text(&error));
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let ends = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new().name("castanet-arrive".to_owned());
        let is_over = ends.clone();
        let thread = thread.spawn(move || accept(&listener, &key, &control, &is_over));
        let thread = Some(thread.map_err(failed)?);
        Ok(MigrationListener { address, ends, thread })
    }
}

impl Drop for MigrationListener {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // A connection wakes the thread. If there can be none, the thread ends with the process.
        if TcpStream::connect_timeout(&reachable(self.address), Duration::from_secs(1)).is_ok()
            && let Some(thread) = self.thread.take()
        {
            _ = thread.join();
        }
    }
}

/// The address by which this host reaches its own listener.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn accept(
    listener: &TcpListener,
    key: &MigrationKey,
    control: &ControlSender<InstanceService>,
    ends: &AtomicBool,
) {
    // Each connection has a clone.
    let connections = Arc::new(());
    loop {
        let accepted = listener.accept();
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let Ok((stream, from)) = accepted else {
            std::thread::sleep(PAUSE);
            continue;
        };
        if Arc::strong_count(&connections) > MOST_CONNECTIONS {
            continue;
        }
        let (key, control, open) = (key.clone(), control.clone(), connections.clone());
        let receive = move || {
            let _open = open;
            let channel = SecureChannel::accept(stream, &key);
            match channel.and_then(|channel| arrival::receive(channel, control)) {
                Ok(line) => inform(format_args!("castanet: {line}")),
                Err(reason) => complain(format_args!("castanet: from {from}: {reason}")),
            }
        };
        let thread = std::thread::Builder::new().name("castanet-arrival".to_owned());
        // Without a thread the connection is closed.
        _ = thread.spawn(receive);
    }
}
