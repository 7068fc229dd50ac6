//! `PortInfo`: names TCP and UDP ports.

use castanet_element::args::PORT;
use castanet_element::prelude::*;

/// Gives names to TCP and UDP ports, for use in patterns.
///
/// ```click
/// PortInfo(game 5555, chat 6666/udp)
/// in -> c :: IPClassifier(dst port game, dst port chat) -> a;  c[1] -> b
/// > in 1.0.0.1:1 > 2.0.0.2:6666 udp
/// > in 1.0.0.1:1 > 2.0.0.2:5555 udp
/// < a  1.0.0.1:1 > 2.0.0.2:5555 udp
/// < b  1.0.0.1:1 > 2.0.0.2:6666 udp
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct PortInfo {
    /// A name, then its ports; a suffix `/tcp` or `/udp` is allowed and has no effect.
    #[arg(rest)]
    ports: Vec<Words>,
}

impl Info for PortInfo {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in self.ports.iter().filter(|it| !it.words.is_empty()) {
            let [name, ports @ ..] = argument.words.as_slice() else { continue };
            if ports.is_empty() {
                return Err(ArgError::new(format!("`{name}` has no port"))
                    .click("expected 'NAME PORT [PORT...]'"));
            }
            for port in ports {
                let (number, protocol) = port.split_once('/').unwrap_or((port, "tcp"));
                let number = u16::from_arg(number, &Names::default()).ok();
                let known = matches!(protocol, "tcp" | "udp");
                let number = number.filter(|_| known).ok_or_else(|| {
                    ArgError::new(format!("`{port}` is no port of TCP or UDP"))
                        .click(format!("'{port}' is not a port"))
                })?;
                facts.names.declare(name.clone(), format!("{PORT}{number}"));
            }
        }
        Ok(())
    }
}
