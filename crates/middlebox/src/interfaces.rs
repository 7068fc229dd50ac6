//! Names and addresses of the interfaces, and whether rules are attached to them.

use castanet_element::error::ArgError;
use castanet_lang::nearest;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The interfaces of the inputs. An interface has several inputs where packets come in by one of several, and
/// their way out is known: one for each path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interfaces {
    names: Arc<[(String, String)]>,
    /// Addresses of the router itself at interfaces, by name.
    addresses: Arc<[(String, IpAddr)]>,
    enabled: Vec<bool>,
}

impl Interfaces {
    /// Interfaces of these names; of their numbers, where there are none. A
    /// packet that comes in by one of two leaves by the other.
    pub(crate) fn new(
        inputs: Option<Vec<String>>,
        outputs: Option<Vec<String>>,
        count: usize,
    ) -> Result<Interfaces, ArgError> {
        let fits = |names: &Vec<String>, what: &str| match names.len() == count {
            true => Ok(()),
            false => {
                let named = names.len();
                let many = if count == 1 { "one input".into() } else { format!("{count} inputs") };
                Err(ArgError::new(format!("{named} names for {many}")).at(what))
            }
        };
        inputs.iter().try_for_each(|names| fits(names, "INTERFACES"))?;
        outputs.iter().try_for_each(|names| fits(names, "OUT"))?;
        let inputs = inputs.unwrap_or_else(|| (0..count).map(|n| n.to_string()).collect());
        let outputs = outputs.unwrap_or_else(|| {
            let mut names = inputs.clone();
            if names.len() == 2 {
                names.reverse();
            }
            names
        });
        let names = inputs.into_iter().zip(outputs).collect();
        Ok(Interfaces { names, addresses: Arc::default(), enabled: vec![true; count] })
    }

    /// The interfaces with addresses of the router itself, `NAME=ADDRESS` each.
    pub(crate) fn with_addresses(self, words: &[String]) -> Result<Interfaces, ArgError> {
        let parse = |word: &String| {
            let (name, address) = word.split_once('=').unwrap_or((word, ""));
            let address = address.parse().map_err(|_| {
                ArgError::new(format!("`{word}`: it takes NAME=ADDRESS, such as eth0=10.0.1.1"))
            })?;
            self.port(name).map_err(ArgError::new)?;
            Ok((name.to_owned(), address))
        };
        let addresses: Result<_, ArgError> = words.iter().map(parse).collect();
        Ok(Interfaces { addresses: addresses.map_err(|error| error.at("ADDRESSES"))?, ..self })
    }

    /// The first address of the router itself, of a family, at an input's interface.
    pub(crate) fn address(&self, port: usize, is_ip6: bool) -> Option<IpAddr> {
        let (input, _) = self.names(port);
        let own = self.addresses.iter().filter(|(name, _)| name == input);
        own.map(|&(_, address)| address).find(|it| it.is_ipv6() == is_ip6)
    }

    /// The names of an input's interface, and of that by which its packets leave.
    #[inline]
    pub(crate) fn names(&self, port: usize) -> (&str, &str) {
        self.names.get(port).map_or(("", ""), |(input, output)| (input, output))
    }

    /// The output by which an answer to a packet goes back: that of the input's interface; `None` if
    /// there is none.
    pub(crate) fn way_back(&self, port: usize) -> Option<usize> {
        let (input, _) = self.names.get(port)?;
        self.names.iter().position(|(_, output)| output == input)
    }

    /// Number of inputs.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name of an input's interface, or of that by which its packets leave.
    pub(crate) fn name(&self, port: usize, is_out: bool) -> &str {
        let (input, output) = self.names(port);
        if is_out { output } else { input }
    }

    /// The input of an interface of that name; or that there is none.
    pub(crate) fn port(&self, name: &str) -> Result<usize, String> {
        let found = self.names.iter().position(|(input, _)| input == name);
        found.ok_or_else(|| {
            let known = self.names.iter().map(|(input, _)| input.as_str());
            let near = nearest(name, known).map(|it| format!("; did you mean {it}?"));
            format!("there is no interface {name}{}", near.unwrap_or_default())
        })
    }

    /// The input of the path between interfaces of these names, the first if one is not named; or that there is
    /// none.
    pub(crate) fn path(&self, input: Option<&str>, output: Option<&str>) -> Result<usize, String> {
        let first = input.map_or(Ok(0), |name| self.port(name))?;
        let Some(output) = output else { return Ok(first) };
        let fits =
            |(from, to): &(String, String)| input.is_none_or(|name| name == from) && to == output;
        let found = self.names.iter().position(fits);
        found.ok_or_else(|| match input {
            Some(input) => format!("no packet that comes in by {input} leaves by {output}"),
            None => format!("there is no interface {output} by which a packet leaves"),
        })
    }

    /// Whether rules are attached to an input's interface.
    #[inline]
    pub(crate) fn is_enabled(&self, port: usize) -> bool {
        self.enabled.get(port).is_some_and(|&enabled| enabled)
    }

    /// Attaches rules to interfaces or detaches them; what there is to say of it.
    pub(crate) fn set(&mut self, names: &[String], enabled: bool) -> Result<String, String> {
        let word = if enabled { "enabled" } else { "disabled" };
        let mut changed = self.clone();
        for name in names {
            if changed.is_enabled(self.port(name)?) == enabled {
                return Err(format!("{name} is {word} already"));
            }
            changed.set_all(name, enabled);
        }
        *self = changed;
        Ok(format!("{word} {}", names.join(" ")))
    }

    /// Attaches rules to all inputs of an interface or detaches them.
    fn set_all(&mut self, name: &str, enabled: bool) {
        let all = self.names.iter().zip(&mut self.enabled);
        let own = all.filter(|((input, _), _)| input == name);
        own.for_each(|(_, state)| *state = enabled);
    }

    /// The interfaces with rules attached as lines say, `NAME enabled` or `NAME disabled`.
    pub(crate) fn with_states(&self, text: &str) -> Result<Interfaces, String> {
        let mut new = self.clone();
        for line in text.lines() {
            let (name, word) = line.trim().rsplit_once(' ').unwrap_or((line, ""));
            self.port(name)?;
            let enabled = match word {
                "enabled" => true,
                "disabled" => false,
                _ => return Err(format!("`{line}`: wants NAME enabled or NAME disabled")),
            };
            new.set_all(name, enabled);
        }
        Ok(new)
    }
}

/// An interface a line, with whether rules are attached to it.
impl fmt::Display for Interfaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (port, (input, _)) in self.names.iter().enumerate() {
            if self.port(input) == Ok(port) {
                let word = if self.is_enabled(port) { "enabled" } else { "disabled" };
                writeln!(f, "{input} {word}")?;
            }
        }
        Ok(())
    }
}
