//! `docs/language.md` is right: its configurations, its packets, and the output of its commands.

use std::path::Path;

use castanet_bench::example;
use castanet_element::example::is_script;
use castanet_lab::{CodeBlock, code_blocks};

use crate::program::{castanet, folder, root, run_shell};

/// The file of a configuration: the name in its first line, or the page's usual one.
fn file_name(text: &str) -> &str {
    let first = text.lines().next().unwrap_or_default();
    let name = first.strip_prefix("// ").filter(|name| name.ends_with(".click"));
    name.filter(|name| !name.contains(' ')).unwrap_or("router.click")
}

/// Runs the commands of a block in the folder of the configurations, and compares their output.
fn run_console(block: &CodeBlock, folder: &Path, wrong: &mut Vec<String>) {
    let program = Path::new(env!("CARGO_BIN_EXE_castanet")).parent().unwrap();
    for step in block.steps() {
        let result = run_shell(&step.command, folder, program);
        if result.out != step.output {
            let (line, command) = (block.line, &step.command);
            wrong.push(format!("line {line}: {command} printed:\n{}", result.out));
        }
    }
}

#[test]
fn every_block_is_right() {
    let page = std::fs::read_to_string(root().join("docs/language.md")).unwrap();
    let folder = folder("language-page");
    let library = castanet_elements::library();
    let blocks = code_blocks(&page);
    let mut wrong = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        let next = blocks.get(i + 1).map_or("", |next| next.language.as_str());
        let file = folder.join(file_name(&block.text));
        match block.language.as_str() {
            "click" if block.text.lines().any(is_script) => {
                for (workers, burst) in example::WAYS {
                    if let Err(e) = example::run(&block.text, &library, workers, burst) {
                        wrong.push(format!("line {}: {e}", block.line));
                        break;
                    }
                }
            }
            "click" => {
                std::fs::write(&file, &block.text).unwrap();
                if next != "console" && file.ends_with("router.click") {
                    let result = castanet(&["check", file.to_str().unwrap()], b"");
                    if (result.status, result.err.as_str()) != (Some(0), "") {
                        wrong.push(format!("line {}: {}", block.line, result.err));
                    }
                }
            }
            "console" => run_console(block, &folder, &mut wrong),
            other => wrong.push(format!("line {}: a block of {other}", block.line)),
        }
    }
    assert!(blocks.len() > 25, "{} blocks", blocks.len());
    assert!(wrong.is_empty(), "docs/language.md is wrong:\n{}", wrong.join("\n"));
}
