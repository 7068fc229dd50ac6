//! `KernelHandlerProxy`: the handlers of a router in the kernel.

use castanet_element::files::{LONGEST, OFlag, beneath};
use castanet_element::prelude::*;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Passes its handlers on to those of a Click router in the Linux kernel.
///
/// Handler `E.H` stands for handler `H` of the kernel's element `E`, to be read
/// and to be written; `0.H` for those of the router itself. They are files
/// below `/click` or `/proc/click`, which Click's kernel module makes. Whether
/// there is such a router, element or handler shows when one is called. A
/// `ControlSocket` with `PROXY` lets other programs at them.
///
/// ```text
/// kernel :: KernelHandlerProxy;
/// ControlSocket(UNIX, /run/kernel-router.sock, PROXY kernel);
/// ```
#[derive(Element)]
#[element(args = KernelHandlerProxyArgs)]
pub struct KernelHandlerProxy {
    verbose: bool,
    /// Where the kernel's handlers may be.
    roots: Vec<PathBuf>,
}

/// What can be set.
#[derive(Args)]
pub struct KernelHandlerProxyArgs {
    /// Whether to say which handlers could not be read.
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
        check(name).is_ok_and(|it| it.is_some())
    }

    fn call(
        &self,
        (): &mut (),
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        let (element, name) = match check(handler) {
            Ok(found) => found?,
            Err(error) => return Some(Err(error)),
        };
        let done = if write { self.write(element, name, text) } else { self.read(element, name) };
        if let (Err(error), true) = (&done, self.verbose && !write) {
            desk.chatter(&format!("{}: {}\n", desk.name(), desk.words(error)));
        }
        Some(done)
    }
}

/// The element and the handler that a name stands for; neither, if it is one of an element's own.
fn check(name: &str) -> Result<Option<(&str, &str)>, ArgError> {
    let Some((element, handler)) = name.split_once('.') else { return Ok(None) };
    let bad = |what: &str, which: &str| Err(ArgError::new(format!("Bad {what} `{which}'")));
    if element.is_empty() || handler.is_empty() {
        return bad("handler name", name);
    }
    // They become names of files, which must not lie elsewhere.
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
    /// Where the kernel's handlers are.
    fn root(&self) -> Result<&Path, ArgError> {
        let found = self.roots.iter().find(|root| root.is_dir());
        found.map(PathBuf::as_path).ok_or_else(|| {
            ArgError::new("No router installed")
                .help("this machine's kernel runs no Click: there is no `/click` or `/proc/click`")
        })
    }

    /// Opens a handler's file, which links do not lead to.
    fn open(&self, element: &str, name: &str, flags: OFlag) -> Result<File, ArgError> {
        let file = if element == "0" { PathBuf::from(name) } else { Path::new(element).join(name) };
        let opened = beneath(self.root()?, &file, flags);
        opened.map_err(|error| self.complaint(element, name, &error))
    }

    fn read(&self, element: &str, name: &str) -> Result<String, ArgError> {
        let (file, mut bytes) = (self.open(element, name, OFlag::O_RDONLY)?, Vec::new());
        let read = file.take(LONGEST as u64).read_to_end(&mut bytes);
        let text = read.map(|_| String::from_utf8_lossy(&bytes).into_owned());
        text.map_err(|error| self.complaint(element, name, &error))
    }

    fn write(&self, element: &str, name: &str, text: &str) -> Result<String, ArgError> {
        let mut file = self.open(element, name, OFlag::O_WRONLY | OFlag::O_TRUNC)?;
        let written = file.write_all(text.as_bytes());
        written.map(|()| String::new()).map_err(|error| self.complaint(element, name, &error))
    }

    /// Why a handler could not be called, in Click's words.
    fn complaint(&self, element: &str, name: &str, error: &std::io::Error) -> ArgError {
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
    fn handlers_are_files() {
        let root = std::env::temp_dir().join(format!("castanet-click-{}", std::process::id()));
        fs::create_dir_all(root.join("c/inner")).unwrap();
        fs::write(root.join("version"), "2.1\n").unwrap();
        fs::write(root.join("c/count"), "17\n").unwrap();
        let proxy = proxy(vec!["/nonexistent".into(), root.clone()]);
        assert_eq!(proxy.read("0", "version").unwrap(), "2.1\n");
        assert_eq!(proxy.read("c", "count").unwrap(), "17\n");
        proxy.write("c", "count", "1").unwrap();
        assert_eq!(fs::read_to_string(root.join("c/count")).unwrap(), "1");
        let said = |answer: Result<String, ArgError>| answer.unwrap_err().to_string();
        assert_eq!(said(proxy.read("d", "count")), "No element named `d'");
        assert_eq!(said(proxy.read("c", "rate")), "No handler named `c.rate'");
        assert_eq!(said(proxy.read("c", "inner")), "No handler named `c.inner'");
        assert_eq!(said(proxy.write("c", "rate", "1")), "No handler named `c.rate'");
        // Nor do links lead out.
        std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("c/passwd")).unwrap();
        assert_eq!(said(proxy.read("out", "passwd")), "No handler named `out.passwd'");
        assert_eq!(said(proxy.read("c", "passwd")), "No handler named `c.passwd'");
        assert_eq!(said(proxy.write("c", "passwd", "")), "No handler named `c.passwd'");
        fs::remove_dir_all(root).unwrap();
        assert!(said(proxy.read("c", "count")).contains("No router installed"));
    }

    #[test]
    fn names_do_not_leave_the_directory() {
        assert_eq!(check("name").unwrap(), None);
        assert_eq!(check("a/b@3.rate x").unwrap(), Some(("a/b@3", "rate x")));
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
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
