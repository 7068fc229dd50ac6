//! The access control of a `Socket`: decides by routing tables which clients it accepts.

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

    fn step(&self, (): &mut (), control: &mut dyn ControlContext) -> ProgramWait {
        for table in self.allow.iter().chain(&self.deny) {
            if !control.exists(&format!("{table}.lookup"), false) {
                control.chatter(&format!("{}: {table} is not an IPRouteTable\n", control.label()));
                control.request_stop();
            }
        }
        ProgramWait::Ended
    }

    fn references(&self) -> Vec<ProgramReference> {
        let tables = self.allow.iter().chain(&self.deny);
        tables.map(|table| ProgramReference::Read(format!("{table}.lookup"))).collect()
    }

    fn call(
        &self,
        (): &mut (),
        handler: &str,
        address: &str,
        write: bool,
        control: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        if (handler, write) != ("judge", true) {
            return None;
        }
        let mut has = |table: &Option<String>| {
            let table = table.as_ref()?;
            let output = control.read(&format!("{table}.lookup {address}")).ok()?;
            // The output of a route is a number; -1 means that there is no route.
            Some(output.starts_with(|c: char| c.is_ascii_digit()))
        };
        let may = has(&self.allow) == Some(true) || has(&self.deny) != Some(true);
        let handler = format!("{}.judged", control.name());
        Some(control.write(&handler, &format!("{address} {may}")).map(|()| String::new()))
    }
}
