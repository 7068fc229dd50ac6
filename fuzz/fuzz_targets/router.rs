//! Builds whatever configuration the input is and lets it run a little, in
//! simulated time and without devices.
#![no_main]

use castanet_engine::router::{Options, Router};
use castanet_engine::worker::Console;
use castanet_lang::{SourceMap, expand, parse};
use std::sync::Arc;

struct Silent;

impl Console for Silent {
    fn chatter(&self, _: &str) {}
    fn print(&self, _: &str) {}
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let library = castanet_elements::library();
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz", data);
    let (tree, mut found) = parse(&mut sources, file);
    let (flat, more) = expand(&tree, &|class: &str| library.get(class).is_some(), &[]);
    found.append(more);
    if found.has_errors() {
        return;
    }
    let mut options = Options::new(Arc::new(Silent));
    (options.simulated, options.frames) = (true, 256);
    if let Some(mut router) = Router::build(&flat, &library, &options, &mut found) {
        router.settle(100);
        let report = router.dismantle();
        assert_eq!((report.leaked_frames, report.panics), (0, 0));
    }
});
