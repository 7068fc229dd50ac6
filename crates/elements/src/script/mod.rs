//! Elements that run programs of handler calls on the control thread.

pub mod driver_manager;
pub mod handler_aggregate;
pub mod quit_watcher;
#[allow(clippy::module_inception)] // the element is called what the room is
pub mod script;
mod script_ports;
mod script_runner;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    control::<script_runner::ScriptRunner<driver_manager::DriverManager>>(),
    control::<handler_aggregate::HandlerAggregate>(),
    control::<quit_watcher::QuitWatcher>(),
    control::<script_runner::ScriptRunner<script::Script>>()
        .or_with_ports(&script_ports::SCRIPT_PORTS),
];
