//! Files of the page, which the program contains. Those in `web/vendor` come from the registry of npm
//! (`cargo xtask vendor`).

/// A file of the page.
pub(crate) struct Asset {
    path: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! assets {
    ($($kind:ident $path:literal $file:literal),* $(,)?) => {
        &[$(Asset {
            path: $path,
            content_type: $kind,
            text: include_str!(concat!("../../web/", $file)),
        }),*]
    };
}

/// All files, by the paths at which clients find them.
const ASSETS: &[Asset] = assets![
    HTML "/" "index.html",
    STYLE "/style.css" "style.css",
    IMAGE "/icon.svg" "icon.svg",
    SCRIPT "/app.js" "app.js",
    SCRIPT "/client.js" "client.js",
    SCRIPT "/drops.js" "drops.js",
    SCRIPT "/element.js" "element.js",
    SCRIPT "/format.js" "format.js",
    SCRIPT "/graph.js" "graph.js",
    SCRIPT "/history.js" "history.js",
    SCRIPT "/html.js" "html.js",
    SCRIPT "/layout.js" "layout.js",
    SCRIPT "/log.js" "log.js",
    SCRIPT "/table.js" "table.js",
    SCRIPT "/trace.js" "trace.js",
    SCRIPT "/view_box.js" "view_box.js",
    SCRIPT "/vendor/dagre.js" "vendor/dagre.js",
    SCRIPT "/vendor/htm.js" "vendor/htm.js",
    SCRIPT "/vendor/preact.js" "vendor/preact.js",
    SCRIPT "/vendor/preact_hooks.js" "vendor/preact_hooks.js",
    SCRIPT "/vendor/uplot.js" "vendor/uplot.js",
    STYLE "/vendor/uplot.css" "vendor/uplot.css",
];

/// The file at a path.
pub(crate) fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_only_files_that_are_there() {
        for file in ASSETS.iter().filter(|file| !file.path.starts_with("/vendor")) {
            let quoted = file.text.split('"').skip(1).step_by(2);
            let own = quoted.filter_map(|it| it.strip_prefix("./").or(it.strip_prefix('/')));
            for name in own.filter(|it| it.ends_with(".js") || it.ends_with(".css")) {
                assert!(asset(&format!("/{name}")).is_some(), "{} names {name}", file.path);
            }
            // Nothing is fetched from other hosts.
            for address in ["https://", "//cdn"] {
                assert!(!file.text.contains(address), "{}: {address}", file.path);
            }
        }
    }
}
