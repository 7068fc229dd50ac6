//! What decides for a `Socket` who may come in.

use super::socket::SocketArgs;
use castanet_element::prelude::*;

/// Looks addresses up in the tables that a `Socket` names.
#[derive(Element)]
#[element(args = SocketArgs)]
pub(super) struct SocketGate {
    allow: Option<String>,
    deny: Option<String>,
}

impl Build for SocketGate {
    type Args = SocketArgs;

    fn build(settings: SocketArgs, _: &Setup) -> Result<Self, ArgError> {
        Ok(SocketGate { allow: settings.allow, deny: settings.deny })
    }
}

impl Control for SocketGate {
    type Local = ();

    fn step(&self, (): &mut (), desk: &mut dyn ControlContext) -> ProgramWait {
        for table in self.allow.iter().chain(&self.deny) {
            if !desk.exists(&format!("{table}.lookup"), false) {
                desk.chatter(&format!("{}: {table} is not an IPRouteTable\n", desk.label()));
                desk.request_stop();
            }
        }
        ProgramWait::Ended
    }

    fn call(
        &self,
        (): &mut (),
        handler: &str,
        address: &str,
        write: bool,
        desk: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        if (handler, write) != ("judge", true) {
            return None;
        }
        let mut has = |table: &Option<String>| {
            let table = table.as_ref()?;
            let found = desk.read(&format!("{table}.lookup {address}")).ok()?;
            // A route has an output; none is -1.
            Some(found.starts_with(|c: char| c.is_ascii_digit()))
        };
        let may = has(&self.allow) == Some(true) || has(&self.deny) != Some(true);
        let handler = format!("{}.judged", desk.name());
        Some(desk.write(&handler, &format!("{address} {may}")).map(|()| String::new()))
    }
}
