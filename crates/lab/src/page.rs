//! Code blocks of a page in Markdown, for tests that do what the page says.

/// A code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeBlock {
    /// The language behind the fence.
    pub language: String,
    /// The lines.
    pub text: String,
    /// The number of the first line in the page, from 1.
    pub line: usize,
}

/// A command of a `console` block: a line that begins with `$ `, and the output below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleStep {
    /// The command, which may go on over lines that end with `\`.
    pub command: String,
    /// The output up to the next command.
    pub output: String,
}

/// Returns the code blocks of a page in their order.
pub fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let mut blocks = Vec::new();
    let mut open: Option<CodeBlock> = None;
    for (number, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                let (language, text) = (language.trim().to_owned(), String::new());
                open = Some(CodeBlock { language, text, line: number + 2 });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

impl CodeBlock {
    /// Returns the commands of a `console` block, without comments behind them.
    pub fn steps(&self) -> Vec<ConsoleStep> {
        let mut steps: Vec<ConsoleStep> = Vec::new();
        let mut goes_on = false;
        for line in self.text.lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (None, Some(step)) if goes_on => {
                    step.command += &format!("\n{line}");
                }
                (None, Some(step)) => step.output += &format!("{line}\n"),
                (None, None) => continue,
                (Some(command), _) => {
                    let command = command.split("   #").next().unwrap_or_default().trim_end();
                    steps.push(ConsoleStep { command: command.to_owned(), output: String::new() });
                }
            }
            goes_on = line.ends_with('\\');
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_commands_are_found() {
        let page = "Text\n\n```console\n$ a b \\\n    c\none\ntwo\n$ d   # says nothing\n```\n```sh\ne\n```\n";
        let blocks = code_blocks(page);
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].language.as_str(), blocks[0].line), ("console", 4));
        assert_eq!((blocks[1].language.as_str(), blocks[1].text.as_str()), ("sh", "e\n"));
        let step = |command: &str, output: &str| ConsoleStep {
            command: command.to_owned(),
            output: output.to_owned(),
        };
        let steps = [step("a b \\\n    c", "one\ntwo\n"), step("d", "")];
        assert_eq!(blocks[0].steps(), steps);
    }
}
