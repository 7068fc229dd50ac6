//! Names that stand for addresses, by the part of the graph in which they hold: inside each sealed
//! compound, and outside of all of them.

use super::Names;
use super::names::Resolver;
use crate::files::HandlerFiles;
use std::collections::HashMap;

/// A name, and the address that it stands for, as `AddressInfo` writes it.
type Declaration = (String, String);

/// Names that information elements declare. A name that is declared inside a sealed compound holds
/// there only; all others hold outside of all of them only.
#[derive(Clone, Default)]
pub struct DeclaredNames {
    all: ByScope<Vec<Declaration>>,
    /// The sealed compound whose elements declare; `None` for elements outside.
    here: Option<String>,
}

impl DeclaredNames {
    /// No names, in a graph with these sealed compounds.
    pub fn new(sealed: &[String]) -> DeclaredNames {
        let inside = sealed.iter().map(|compound| (compound.clone(), Vec::new())).collect();
        DeclaredNames { all: ByScope { outside: Vec::new(), inside }, here: None }
    }

    /// Has what follows be about the names that hold where `element` stands.
    pub fn enter(&mut self, element: &str) {
        self.here = self.all.scope(element).map(str::to_owned);
    }

    /// The names that hold here, each with an address that it stands for.
    pub fn here(&self) -> &[Declaration] {
        let inside = self.here.as_ref().and_then(|scope| self.all.inside.get(scope));
        inside.unwrap_or(&self.all.outside)
    }

    /// Whether only names that the compound declares hold here, and not those of interfaces.
    pub fn is_sealed(&self) -> bool {
        self.here.is_some()
    }

    /// Adds an address of a name that holds here.
    pub fn declare(&mut self, name: String, address: String) {
        let inside = self.here.as_ref().and_then(|scope| self.all.inside.get_mut(scope));
        inside.unwrap_or(&mut self.all.outside).push((name, address));
    }

    /// The same for arguments. `interfaces` knows the addresses of interfaces, which have names outside
    /// of sealed compounds only.
    pub fn resolved(&self, interfaces: Option<Resolver>) -> ScopedNames {
        let ByScope { outside, inside } = &self.all;
        let names_inside = |(scope, declared): (&String, &Vec<Declaration>)| {
            (scope.clone(), Names::sealed(scope, declared))
        };
        ScopedNames(ByScope {
            outside: Names::new(outside, interfaces),
            inside: inside.iter().map(names_inside).collect(),
        })
    }
}

/// The names that arguments of each element may use, and the files that its handlers may name.
#[derive(Clone, Default)]
pub struct ScopedNames(ByScope<Names>);

impl ScopedNames {
    /// The same, with files that handlers may name; those of elements inside sealed compounds may name
    /// none.
    pub fn with_files(mut self, files: HandlerFiles) -> ScopedNames {
        self.0.outside = self.0.outside.with_files(files);
        self
    }

    /// The names that hold where `element`, a full name, stands.
    pub fn of(&self, element: &str) -> &Names {
        let inside = self.0.scope(element).and_then(|scope| self.0.inside.get(scope));
        inside.unwrap_or(&self.0.outside)
    }
}

/// A value for elements outside of all sealed compounds, and one for those inside of each.
#[derive(Clone, Default)]
struct ByScope<T> {
    outside: T,
    /// By sealed compound.
    inside: HashMap<String, T>,
}

impl<T> ByScope<T> {
    /// The innermost sealed compound around an element.
    fn scope<'a>(&self, element: &'a str) -> Option<&'a str> {
        let mut inner = element;
        while let Some((outer, _)) = inner.rsplit_once('/') {
            if self.inside.contains_key(outer) {
                return Some(outer);
            }
            inner = outer;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::AddressKind;
    use std::sync::Arc;

    /// Names `x` and others, declared outside and in two of three sealed compounds.
    fn names() -> ScopedNames {
        let mut declared = DeclaredNames::new(&["a".to_owned(), "b".to_owned(), "c/d".to_owned()]);
        for (element, name, address) in [
            ("a/info", "x", "1.0.0.1"),
            ("info", "x", "3.0.0.3"),
            ("b/in/info", "x", "2.0.0.2"),
            ("b/info", "y", "2.0.0.9"),
            ("c/info", "z", "lo:ip"),
            ("a/info", "z", "lo:ip"),
        ] {
            declared.enter(element);
            declared.declare(name.to_owned(), address.to_owned());
        }
        let machine = |name: &str, kind| {
            (name == "lo" && kind == AddressKind::Ip).then(|| "127.0.0.1".to_owned())
        };
        declared.resolved(Some(Arc::new(machine)))
    }

    #[test]
    fn names_hold_in_the_compound_that_declares_them() {
        let names = names();
        for (element, name, address) in [
            ("a/e", "x", Some("1.0.0.1")),
            ("a/in/e", "x", Some("1.0.0.1")),
            ("a/e", "y", None),
            ("a/e", "z", None),
            ("a/e", "lo:ip", None),
            ("b/e", "x", Some("2.0.0.2")),
            ("b/e", "y", Some("2.0.0.9")),
            ("c/d/e", "x", None),
            ("c/d/e", "z", None),
            ("c/d/e", "lo", None),
            ("e", "x", Some("3.0.0.3")),
            ("a", "x", Some("3.0.0.3")),
            ("ab/e", "x", Some("3.0.0.3")),
            ("c/e", "z", Some("127.0.0.1")),
            ("c/e", "lo:ip", Some("127.0.0.1")),
            ("e", "y", None),
        ] {
            let found = names.of(element).resolve(name, AddressKind::Ip);
            assert_eq!(found.as_deref(), address, "{name} of {element}");
        }
        assert_eq!(names.of("b/e").scope(), Some("b"));
        assert_eq!(names.of("c/d/e/f").scope(), Some("c/d"));
        assert_eq!(names.of("c/e").scope(), None);
    }

    #[test]
    fn declarations_are_those_of_one_scope() {
        let mut declared = DeclaredNames::new(&["a".to_owned()]);
        declared.declare("x".to_owned(), "1.0.0.1".to_owned());
        declared.enter("a/info");
        assert!(declared.here().is_empty());
        declared.declare("y".to_owned(), "1.0.0.2".to_owned());
        assert_eq!(declared.here(), [("y".to_owned(), "1.0.0.2".to_owned())]);
        declared.enter("info");
        assert_eq!(declared.here(), [("x".to_owned(), "1.0.0.1".to_owned())]);
    }

    #[test]
    fn handlers_in_sealed_compounds_name_no_files() {
        let files = HandlerFiles::any(Box::new(|_| ()));
        let names = names().with_files(files.of(["write_file /dev/null"].into_iter()));
        names.of("e").files().write("write_file", "/dev/null", b"").expect("is named");
        let refused = names.of("a/e").files().write("write_file", "/dev/null", b"");
        let refused = refused.expect_err("is refused").to_string();
        assert!(refused.contains("reach no files") && !refused.contains("--"), "{refused}");
    }
}
