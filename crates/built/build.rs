//! Puts the source that `castanet build` generated where the program includes it.

use std::path::Path;

/// The program where nothing was generated.
const PLAIN: &str = "const PROGRAM: castanet::Program = castanet::Program::PLAIN;\n";

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed=CASTANET_PROGRAM");
    let text = match std::env::var_os("CASTANET_PROGRAM") {
        None => PLAIN.to_owned(),
        Some(file) => {
            let file = Path::new(&file);
            println!("cargo::rerun-if-changed={}", file.display());
            std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?
        }
    };
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo gives no OUT_DIR")?;
    let to = Path::new(&folder).join("program.rs");
    // An equal file keeps its time, so that nothing is compiled again.
    if std::fs::read_to_string(&to).ok().as_ref() != Some(&text) {
        std::fs::write(&to, text).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    Ok(())
}
