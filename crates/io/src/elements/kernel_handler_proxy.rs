//! `KernelHandlerProxy`: calls the handlers of a router in the kernel.

use castanet_element::files::{LONGEST, OFlag, beneath};
use castanet_element::prelude::*;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Calls the handlers of a Click router in the Linux kernel.
///
/// To read or write handler `E.H` of this element is to read or write handler `H`
/// of the kernel's element `E`; `0.H` is a handler of the router itself. Click's
/// kernel module makes a file for each below `/click` or `/proc/click`. The element
/// checks at each call that the router, the element and the handler exist. A
/// `ControlSocket` with `PROXY` lets other programs call them.
///
/// ```text
/// kernel :: KernelHandlerProxy;
/// ControlSocket(UNIX, /run/kernel-router.sock, PROXY kernel);
/// ```
#[derive(Element)]
#[element(args = KernelHandlerProxyArgs)]
pub struct KernelHandlerProxy {
    verbose: bool,
    /// The directories in which the kernel's handlers may be.
    roots: Vec<PathBuf>,
}

/// The arguments of `KernelHandlerProxy`.
#[derive(Args)]
pub struct KernelHandlerProxyArgs {
    /// Whether to write a line about each handler that could not be read.
    #[arg(keyword, default = false)]
    verbose: bool,
}

impl Build for KernelHandlerProxy {
    type Args = KernelHandlerProxyArgs;

    fn build(settings: KernelHandlerProxyArgs, _: &Setup) -> Result<Self, ArgError> {
        let roots = ["/click", "/proc/click"].map(PathBuf::from).into();
        Ok(KernelHandlerProxy { verbose: settings.verbose, roots })
    }
}

impl Control for KernelHandlerProxy {
    type Local = ();

    fn step(&self, (): &mut (), _: &mut dyn ControlContext) -> ProgramWait {
        ProgramWait::Notified
    }

    fn has_handler(&self, name: &str, _: bool) -> bool {
        parse_name(name).is_ok_and(|it| it.is_some())
    }

    fn call(
        &self,
        (): &mut (),
        handler: &str,
        text: &str,
        write: bool,
        control: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        let (element, name) = match parse_name(handler) {
            Ok(found) => found?,
            Err(error) => return Some(Err(error)),
        };
        let result = if write { self.write(element, name, text) } else { self.read(element, name) };
        if let (Err(error), true) = (&result, self.verbose && !write) {
            control.chatter(&format!("{}: {}\n", control.name(), control.words(error)));
        }
        Some(result)
    }
}

/// Splits a name into element and handler; `None` for a name without a dot, which is not the
/// kernel's.
fn parse_name(name: &str) -> Result<Option<(&str, &str)>, ArgError> {
    let Some((element, handler)) = name.split_once('.') else { return Ok(None) };
    let bad = |what: &str, which: &str| Err(ArgError::new(format!("Bad {what} `{which}'")));
    if element.is_empty() || handler.is_empty() {
        return bad("handler name", name);
    }
    // Both become file names, which must not lead out of the directory.
    let of_element = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '@');
    let of_handler = |c: char| (' '..='~').contains(&c) && c != '/';
    let is_outside = element.starts_with('/') || element.ends_with('/') || element.contains("//");
    if is_outside || !element.chars().all(of_element) {
        return bad("character in element name", element);
    } else if !handler.chars().all(of_handler) || handler.starts_with('.') {
        return bad("character in handler name", name);
    }
    Ok(Some((element, handler)))
}

impl KernelHandlerProxy {
    /// The directory of the kernel's handlers.
    fn root(&self) -> Result<&Path, ArgError> {
        let found = self.roots.iter().find(|root| root.is_dir());
        found.map(PathBuf::as_path).ok_or_else(|| {
            ArgError::new("No router installed")
                .help("this machine's kernel runs no Click: there is no `/click` or `/proc/click`")
        })
    }

    /// Opens a handler's file; follows no symbolic links.
    fn open(&self, element: &str, name: &str, flags: OFlag) -> Result<File, ArgError> {
        let file = if element == "0" { PathBuf::from(name) } else { Path::new(element).join(name) };
        let opened = beneath(self.root()?, &file, flags);
        opened.map_err(|error| self.call_error(element, name, &error))
    }

    fn read(&self, element: &str, name: &str) -> Result<String, ArgError> {
        let (file, mut bytes) = (self.open(element, name, OFlag::O_RDONLY)?, Vec::new());
        let read = file.take(LONGEST as u64).read_to_end(&mut bytes);
        let text = read.map(|_| String::from_utf8_lossy(&bytes).into_owned());
        text.map_err(|error| self.call_error(element, name, &error))
    }

    fn write(&self, element: &str, name: &str, text: &str) -> Result<String, ArgError> {
        let mut file = self.open(element, name, OFlag::O_WRONLY | OFlag::O_TRUNC)?;
        let written = file.write_all(text.as_bytes());
        written.map(|()| String::new()).map_err(|error| self.call_error(element, name, &error))
    }

    /// The error of a handler that could not be called, in Click's words.
    fn call_error(&self, element: &str, name: &str, error: &std::io::Error) -> ArgError {
        let handler = format!("{element}.{name}");
        let there = self.root().is_ok_and(|root| element == "0" || root.join(element).exists());
        ArgError::new(match error.kind() {
            ErrorKind::NotFound if !there => format!("No element named `{element}'"),
            ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
                format!("No handler named `{handler}'")
            }
            ErrorKind::PermissionDenied => format!("Permission denied for `{handler}'"),
            _ => format!("Handler `{handler}' error: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn proxy(roots: Vec<PathBuf>) -> KernelHandlerProxy {
        KernelHandlerProxy { verbose: false, roots }
    }

    #[test]
    fn kernel_handlers_are_read_and_written_as_files() {
        let root = std::env::temp_dir().join(format!("castanet-click-{}", std::process::id()));
        fs::create_dir_all(root.join("c/inner")).unwrap();
        fs::write(root.join("version"), "2.1\n").unwrap();
        fs::write(root.join("c/count"), "17\n").unwrap();
        let proxy = proxy(vec!["/nonexistent".into(), root.clone()]);
        assert_eq!(proxy.read("0", "version").unwrap(), "2.1\n");
        assert_eq!(proxy.read("c", "count").unwrap(), "17\n");
        proxy.write("c", "count", "1").unwrap();
        assert_eq!(fs::read_to_string(root.join("c/count")).unwrap(), "1");
        let error_text = |answer: Result<String, ArgError>| answer.unwrap_err().to_string();
        assert_eq!(error_text(proxy.read("d", "count")), "No element named `d'");
        assert_eq!(error_text(proxy.read("c", "rate")), "No handler named `c.rate'");
        assert_eq!(error_text(proxy.read("c", "inner")), "No handler named `c.inner'");
        assert_eq!(error_text(proxy.write("c", "rate", "1")), "No handler named `c.rate'");
        // Symbolic links do not lead out of the directory.
        std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("c/passwd")).unwrap();
        assert_eq!(error_text(proxy.read("out", "passwd")), "No handler named `out.passwd'");
        assert_eq!(error_text(proxy.read("c", "passwd")), "No handler named `c.passwd'");
        assert_eq!(error_text(proxy.write("c", "passwd", "")), "No handler named `c.passwd'");
        fs::remove_dir_all(root).unwrap();
        assert!(error_text(proxy.read("c", "count")).contains("No router installed"));
    }

    #[test]
    fn names_do_not_leave_the_directory() {
        assert_eq!(parse_name("name").unwrap(), None);
        assert_eq!(parse_name("a/b@3.rate x").unwrap(), Some(("a/b@3", "rate x")));
        for wrong in [
            ".x",
            "c.",
            "c...",
            "c.a/b",
            "../c.x",
            "c d.x",
            "c.\u{e4}",
            "c..x",
            "/etc.shadow",
            "c/.x",
            "a//b.x",
        ] {
            assert!(parse_name(wrong).is_err(), "{wrong}");
        }
    }
}
