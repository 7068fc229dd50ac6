//! Running instances, and connections to them.

use super::format;
use crate::commands::{CommandError, CommandResult, write_json, write_out};
use crate::instance::{
    CONTROL_VERSION, INSTANCE, InstanceDescription, RuntimeDirectory, is_name, is_socket,
};
use castanet_io::control::ControlClient;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A connection to a router.
pub(crate) struct Attachment {
    pub(crate) client: ControlClient,
    /// The instance, as it described itself; `None` if it is another program with Click's protocol.
    pub(crate) instance: Option<InstanceDescription>,
}

impl Attachment {
    fn to(socket: &Path) -> Result<Attachment, String> {
        let mut client = ControlClient::connect(socket, "the router")?;
        let instance = match client.has(INSTANCE)? {
            true => Some(described(&client.read(INSTANCE)?)?),
            false => None,
        };
        Ok(Attachment { client, instance })
    }

    /// Reads a handler of the instance, whose value is JSON.
    pub(crate) fn read_json<T: serde::de::DeserializeOwned>(
        &mut self,
        handler: &str,
    ) -> Result<T, String> {
        self.check()?;
        let text = self.client.read(handler)?;
        serde_json::from_str(&text).map_err(|error| format!("{handler}: {error}"))
    }

    /// Checks that the other side is an instance with handlers of its own, of this version.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.instance {
            None => Err("this control socket belongs to an element: it only reads and writes \
                         handlers; `castanet ctl` without arguments lists instances"
                .into()),
            Some(it) if it.control_version != CONTROL_VERSION => Err(format!(
                "the instance runs castanet {}, which this castanet does not understand",
                it.version
            )),
            Some(_) => Ok(()),
        }
    }

    /// The tenant whose control socket it is, if it is that of one.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.instance.as_ref()?.tenant.as_deref()
    }
}

fn described(text: &str) -> Result<InstanceDescription, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("the instance describes itself badly: {error}"))
}

/// The paths of sockets at which somebody may listen. Files of instances that were killed are removed.
fn sockets() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for directory in RuntimeDirectory::all() {
        for name in directory.names() {
            let path = directory.socket(&name);
            match UnixStream::connect(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    // An instance that is about to start has a socket that does not listen yet.
                    if is_old(&path) {
                        _ = std::fs::remove_file(&path);
                    }
                }
                _ => found.push((name, path)),
            }
        }
    }
    found
}

/// Whether a file is older than the start of an instance takes.
fn is_old(path: &Path) -> bool {
    let modified = path.metadata().and_then(|it| it.modified());
    let age = modified.ok().and_then(|it| it.elapsed().ok());
    age.is_some_and(|age| age > std::time::Duration::from_secs(5))
}

/// Connects to an instance: by its name, by the path of a control socket, or to the only one. An instance comes
/// before a socket of its name in the current folder.
///
/// # Errors
/// There is no such instance, or several and no name.
pub(crate) fn find(target: Option<&str>) -> Result<Attachment, CommandError> {
    if let Some(path) = target.filter(|it| it.contains('/') || !is_name(it)) {
        return Ok(Attachment::to(Path::new(path))?);
    }
    let sockets = sockets();
    let names: Vec<&str> = sockets.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(name) = target {
        return match sockets.iter().find(|(other, _)| other == name) {
            Some((_, path)) => Ok(Attachment::to(path)?),
            None if is_socket(Path::new(name)) => Ok(Attachment::to(Path::new(name))?),
            None => Err(missing(name, &names)),
        };
    }
    match &sockets[..] {
        [(_, path)] => Ok(Attachment::to(path)?),
        [] => Err("no instance runs here; `castanet run` starts one".to_owned().into()),
        _ => {
            // Sockets of tenants are no instances.
            let attach = |(_, path): &(String, PathBuf)| Attachment::to(path);
            let mut all: Vec<_> = sockets.iter().map(attach).collect();
            all.retain(|it| it.as_ref().map_or(true, |it| it.tenant().is_none()));
            match (all.len(), all.pop()) {
                (1, Some(only)) => Ok(only?),
                _ => {
                    let list = names.join(", ");
                    let message = format!("several instances run here: name one of {list}");
                    Err(CommandError::usage(message))
                }
            }
        }
    }
}

/// The error about a name that no instance has.
fn missing(name: &str, names: &[&str]) -> CommandError {
    let help = match (castanet_lang::nearest(name, names.iter().copied()), names) {
        (Some(near), _) => format!("; did you mean '{near}'?"),
        (None, []) => "; none runs here".to_owned(),
        (None, _) => format!("; there are {}", names.join(", ")),
    };
    format!("there is no instance '{name}', and no command of this name{help}").into()
}

/// Prints the running instances.
pub(super) fn list(json: bool) -> CommandResult {
    let mut instances = Vec::new();
    let mut unreachable = Vec::new();
    for (name, path) in sockets() {
        match Attachment::to(&path) {
            Ok(it) if it.tenant().is_some() => {}
            Ok(Attachment { instance: Some(it), .. }) => instances.push(it),
            Ok(Attachment { instance: None, .. }) => {}
            Err(message) => unreachable.push(format!("{name}: {message}")),
        }
    }
    if json {
        write_json(&instances)?;
    } else if instances.is_empty() {
        write_out(None, "No instance runs here. `castanet run` starts one.\n")?;
    } else {
        let title = ["NAME", "PID", "UP", "WORKERS", "ELEMENTS", "VERSION", "CONFIGURATION"];
        let mut rows = vec![title.map(str::to_owned).to_vec()];
        rows.extend(instances.iter().map(|it| {
            vec![
                it.name.clone(),
                it.pid.to_string(),
                format::duration(it.uptime),
                it.workers.to_string(),
                it.elements.to_string(),
                it.version.clone(),
                format::printable(&it.configuration),
            ]
        }));
        let right = [false, true, true, true, true, false, false];
        write_out(None, &format::table(&rows, &right))?;
    }
    unreachable.iter().for_each(crate::terminal::complain);
    Ok(())
}
