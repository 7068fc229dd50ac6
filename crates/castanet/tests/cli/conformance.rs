//! `click` behaves as the pages of `tests/conformance` say, each chapter a configuration with its output.

use crate::program::{folder, link, run_shell};
use castanet_lab::{CodeBlock, ConsoleStep, code_blocks};
use std::path::{Path, PathBuf};

/// The names by which the pages call the program.
const NAMES: [&str; 5] = ["click", "click-align", "click-check", "click-flatten", "click-xform"];

/// The folder of the pages.
fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// The chapters of a page: title, number of the first line, and text.
fn chapters(page: &str) -> Vec<(&str, usize, String)> {
    let mut chapters: Vec<(&str, usize, String)> = Vec::new();
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("## "), chapters.last_mut()) {
            (Some(title), _) => chapters.push((title, number + 1, String::new())),
            (None, Some((_, _, text))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    chapters
}

/// A chapter's commands, run in a folder of its own.
struct Chapter {
    folder: PathBuf,
    /// The folder of the names.
    programs: PathBuf,
}

impl Chapter {
    fn new(page: &str, line: usize) -> Chapter {
        let folder = folder("conformance").join(format!("{page}-{line}"));
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let programs = NAMES.map(link)[0].parent().unwrap().to_owned();
        Chapter { folder, programs }
    }

    /// Writes the file of a block: `config.click`, or the name behind the language.
    fn write(&self, block: &CodeBlock) {
        let name = block.language.split_once(' ').map_or("config.click", |(_, name)| name);
        std::fs::write(self.folder.join(name), &block.text).unwrap();
    }

    /// The text that a command prints to both outputs, and its status unless that is 0.
    fn output(&self, step: &ConsoleStep) -> String {
        let result = run_shell(&step.command, &self.folder, &self.programs);
        let status = match result.status {
            Some(0) => String::new(),
            status => format!("[status {}]\n", status.unwrap_or(-1)),
        };
        result.out + &status
    }
}

/// Runs all chapters of a page; panics with all differences.
fn check(page: &str) {
    let text = std::fs::read_to_string(pages().join(format!("{page}.md"))).unwrap();
    let (mut wrong, mut commands) = (String::new(), 0);
    for (title, line, text) in chapters(&text) {
        let chapter = Chapter::new(page, line);
        for block in code_blocks(&text) {
            if block.language != "console" {
                chapter.write(&block);
                continue;
            }
            for step in block.steps() {
                commands += 1;
                let printed = chapter.output(&step);
                if printed.trim_end_matches('\n') != step.output.trim_end_matches('\n') {
                    let (line, expected) = (line + block.line, &step.output);
                    wrong += &format!(
                        "{page}.md:{line}: {title}\n$ {}\nexpected:\n{expected}printed:\n{printed}\n",
                        step.command
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(commands > 0, "{page}.md has no command");
}

macro_rules! pages {
    ($($test:ident $page:literal)*) => {
        $(#[test]
        fn $test() {
            check($page);
        })*

        #[test]
        fn each_page_is_checked() {
            let mut found: Vec<String> = std::fs::read_dir(pages())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name != "README.md")
                .collect();
            found.sort();
            let checked: Vec<String> = [$($page),*].map(|page| format!("{page}.md")).into();
            assert_eq!(found, checked);
        }
    };
}

pages! {
    turns_and_order "01-turns"
    scripts_handlers_and_messages "02-scripts"
    random_numbers "03-random-numbers"
    rewriters "04-rewriters"
    arp_ethernet_and_vlan "05-ethernet"
    ip "06-ip"
    sources_timestamps_and_analysis "07-sources"
    queues_notifiers_and_rates "08-queues"
    driver_time_and_hot_swap "09-driver"
    language_and_tools "10-language"
    more "11-more"
    details "12-details"
}
