//! The arguments of `WasmElement`.

use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// The arguments of `WasmElement`.
#[derive(Args)]
pub struct WasmElementArgs {
    /// The file of the module, in WebAssembly's binary format.
    #[arg]
    pub(crate) file: String,
    /// The module's configuration. Each argument is a line of the text that the module gets.
    #[arg(rest)]
    pub(crate) configuration: Vec<String>,
    /// Instructions that the module may execute for one batch.
    #[arg(keyword, default = 1_000_000, range = 1000..=1_000_000_000)]
    pub(crate) limit: u64,
    /// Memory that the module may have on each worker, in kibibytes.
    #[arg(keyword, default = 16_384, range = 64..=4_194_304)]
    pub(crate) memory: u64,
}

/// The file that the arguments name.
pub(crate) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &WasmElementArgs| {
        Resource::input(Some(&it.file), "runs the WebAssembly module in it")
    })
}
