//! Control sockets of tenants, and the quotas of their clients.

use super::configurations::TenantConfigurations;
use super::process_calls::ProcessCalls;
use castanet_element::control::ControlWaker;
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_io::control::{DeferredAnswer, InstanceRequest, InstanceSocket};
use castanet_kit::rate::TokenBucket;
use castanet_tenants::{Tenant, TenantControl};
use std::io::ErrorKind;
use std::path::PathBuf;

/// Tokens of one installation, so that a rate of installations in a minute is one of tokens in a second.
const INSTALL: u64 = 60;

/// The control sockets of all tenants.
#[derive(Default)]
pub(crate) struct TenantSockets {
    all: Vec<TenantSocket>,
    /// Index of the socket whose client is next.
    next: usize,
}

/// The control socket of one tenant.
pub(crate) struct TenantSocket {
    /// The tenant.
    pub(crate) tenant: String,
    pub(crate) socket: InstanceSocket,
    control: TenantControl,
    path: PathBuf,
    commands: TokenBucket,
    installs: TokenBucket,
    /// Answers that wait until the new configuration runs.
    pub(crate) deferred: Vec<DeferredAnswer>,
    /// Commands that the tenant's process answers.
    pub(crate) calls: ProcessCalls,
}

impl TenantSockets {
    /// Opens the sockets that the system file names, and closes those that it does not name any more.
    /// `waker` is called for each command of a client.
    ///
    /// # Errors
    /// Sockets that cannot be opened, each with the reason; all others are open.
    pub(crate) fn adapt(
        &mut self,
        configurations: &TenantConfigurations,
        waker: &ControlWaker,
        now: Time,
    ) -> Result<(), String> {
        let system = configurations.system();
        let wanted = |tenant: &Tenant| {
            let control = tenant.control.as_ref()?.value.clone();
            Some((tenant.name.clone(), configurations.path(&control.socket), control))
        };
        let wanted: Vec<_> = system.tenants.iter().filter_map(wanted).collect();
        self.all.retain(|it| {
            wanted.iter().any(|(tenant, path, control)| {
                (tenant, path, control) == (&it.tenant, &it.path, &it.control)
            })
        });
        let mut errors = Vec::new();
        for (tenant, path, control) in wanted {
            if self.all.iter().any(|it| it.tenant == tenant) {
                continue;
            }
            match TenantSocket::open(tenant.clone(), path, control, waker, now) {
                Ok(socket) => self.all.push(socket),
                Err(error) => {
                    errors.push(format!("the control socket of tenant {tenant}: {error}"))
                }
            }
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(errors.join("\n")),
        }
    }

    /// The next command of a client of some tenant, with the index of the socket. Tenants take turns. A command
    /// beyond the tenant's quota waits; `is_waiting` is set then.
    pub(crate) fn next_command(
        &mut self,
        now: Time,
        is_waiting: &mut bool,
    ) -> Option<(usize, InstanceRequest)> {
        for _ in 0..self.all.len() {
            let at = self.next % self.all.len();
            self.next = at + 1;
            let it = &mut self.all[at];
            it.commands.fill(now.nanos());
            if !it.commands.contains(1) {
                *is_waiting = true;
                continue;
            }
            if let Some(request) = it.socket.next() {
                it.commands.remove(1);
                return Some((at, request));
            }
        }
        None
    }

    /// The socket of an index.
    pub(crate) fn at(&mut self, index: usize) -> &mut TenantSocket {
        &mut self.all[index]
    }

    /// All sockets.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TenantSocket> {
        self.all.iter_mut()
    }

    /// The path of a tenant's socket.
    pub(crate) fn path_of(&self, tenant: &str) -> Option<String> {
        self.all.iter().find(|it| it.tenant == tenant).map(|it| it.path.display().to_string())
    }
}

impl TenantSocket {
    fn open(
        tenant: String,
        path: PathBuf,
        control: TenantControl,
        waker: &ControlWaker,
        now: Time,
    ) -> Result<TenantSocket, String> {
        let failed = |error: std::io::Error| {
            let why = match error.kind() {
                ErrorKind::AddrInUse => {
                    "another program listens there, or a file has this name".into()
                }
                _ => crate::load::io_error_text(&error),
            };
            format!("{}: {why}", path.display())
        };
        let group = control.group.as_deref().map(crate::instance::group).transpose()?;
        let socket = InstanceSocket::open(path.clone(), group, waker.clone()).map_err(failed)?;
        let now = now.nanos();
        let rate = u64::from(control.commands_per_second);
        let commands = TokenBucket::new(rate, rate, now);
        let rate = u64::from(control.installs_per_minute);
        let installs = TokenBucket::new(rate, rate * INSTALL, now);
        Ok(TenantSocket {
            tenant,
            socket,
            control,
            path,
            commands,
            installs,
            deferred: Vec::new(),
            calls: ProcessCalls::default(),
        })
    }

    /// As many elements as a configuration may have.
    pub(crate) fn most_elements(&self) -> u32 {
        self.control.elements
    }

    /// Takes the right to install a text of this length.
    ///
    /// # Errors
    /// The quota of the tenant does not allow it.
    pub(crate) fn take_install(&mut self, length: usize, now: Time) -> Result<(), ArgError> {
        if length as u64 > self.control.text {
            let most = self.control.text;
            let message = format!("the configuration has {length} bytes, of {most} allowed");
            return Err(ArgError::new(message));
        }
        self.installs.fill(now.nanos());
        if !self.installs.contains(INSTALL) {
            let rate = self.control.installs_per_minute;
            let lacking = INSTALL - self.installs.tokens();
            let wait = lacking.div_ceil(u64::from(rate));
            let message =
                format!("{rate} installations in a minute are allowed; the next one in {wait} s");
            return Err(ArgError::new(message));
        }
        self.installs.remove(INSTALL);
        Ok(())
    }
}
