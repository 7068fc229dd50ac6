//! Names that stand for addresses, by the compound in which they hold.

use super::Names;
use super::names::Resolver;
use crate::files::HandlerFiles;
use std::collections::{HashMap, HashSet};

/// A name, and the address that it stands for, as `AddressInfo` writes it.
type Declaration = (String, String);

/// Names that information elements declare. A name holds in the compound of the element that declares
/// it and in those inside, where inner names come before outer ones; a name from outside of a sealed
/// compound does not hold inside.
#[derive(Clone, Default)]
pub struct DeclaredNames {
    all: ByScope<Vec<Declaration>>,
    sealed: HashSet<String>,
    /// The compound whose elements declare; `None` for elements outside of all.
    here: Option<String>,
}

impl DeclaredNames {
    /// No names, in a graph with these sealed compounds.
    pub fn new(sealed: &[String]) -> DeclaredNames {
        let inside = sealed.iter().map(|compound| (compound.clone(), Vec::new())).collect();
        let sealed = sealed.iter().cloned().collect();
        DeclaredNames { all: ByScope { outside: Vec::new(), inside }, sealed, here: None }
    }

    /// Has what follows be about the names that hold where `element` stands.
    pub fn enter(&mut self, element: &str) {
        self.here = element.rsplit_once('/').map(|(compound, _)| compound.to_owned());
    }

    /// The names that elements of this compound declare, each with an address that it stands for.
    pub fn here(&self) -> &[Declaration] {
        self.of(self.here.as_deref())
    }

    /// The names that hold here, inner ones first.
    pub fn visible(&self) -> Vec<Declaration> {
        self.seen_from(self.here.as_deref()).0
    }

    /// Whether only names that the compound declares hold here, and not those of interfaces.
    pub fn is_sealed(&self) -> bool {
        self.here.is_some()
    }

    /// Adds an address of a name that holds here.
    pub fn declare(&mut self, name: String, address: String) {
        match self.here.clone() {
            Some(scope) => self.all.inside.entry(scope).or_default(),
            None => &mut self.all.outside,
        }
        .push((name, address));
    }

    /// The names that elements of a compound declare.
    fn of(&self, scope: Option<&str>) -> &[Declaration] {
        match scope {
            Some(scope) => self.all.inside.get(scope).map_or(&[], Vec::as_slice),
            None => &self.all.outside,
        }
    }

    /// The names that hold in a compound, inner ones first, and the sealed compound that it lies in.
    fn seen_from<'a>(&self, scope: Option<&'a str>) -> (Vec<Declaration>, Option<&'a str>) {
        let (mut seen, mut next) = (Vec::new(), scope);
        loop {
            seen.extend_from_slice(self.of(next));
            let Some(scope) = next else { return (seen, None) };
            if self.sealed.contains(scope) {
                return (seen, next);
            }
            next = scope.rsplit_once('/').map(|(outer, _)| outer);
        }
    }

    /// The same for arguments. `interfaces` knows the addresses of interfaces, which have names outside
    /// of sealed compounds only.
    pub fn resolved(&self, interfaces: Option<Resolver>) -> ScopedNames {
        let names_inside = |scope: &String| {
            let names = match self.seen_from(Some(scope)) {
                (declared, Some(sealed)) => Names::sealed(sealed, &declared),
                (declared, None) => Names::new(&declared, interfaces.clone()),
            };
            (scope.clone(), names)
        };
        ScopedNames(ByScope {
            inside: self.all.inside.keys().map(names_inside).collect(),
            outside: Names::new(&self.all.outside, interfaces.clone()),
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
        let unsealed = |names: &mut Names| {
            if names.scope().is_none() {
                *names = std::mem::take(names).with_files(files.clone());
            }
        };
        self.0.inside.values_mut().chain([&mut self.0.outside]).for_each(unsealed);
        self
    }

    /// The names that hold where `element`, a full name, stands.
    pub fn of(&self, element: &str) -> &Names {
        let inside = self.0.scope(element).and_then(|scope| self.0.inside.get(scope));
        inside.unwrap_or(&self.0.outside)
    }
}

/// A value for elements outside of all compounds that have one, and one for those inside of each.
#[derive(Clone, Default)]
struct ByScope<T> {
    outside: T,
    /// By compound.
    inside: HashMap<String, T>,
}

impl<T> ByScope<T> {
    /// The innermost compound around an element that has a value.
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
            ("b/e", "x", None),
            ("b/in/e", "x", Some("2.0.0.2")),
            ("b/in/e", "y", Some("2.0.0.9")),
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
    fn inner_names_come_before_outer_ones() {
        let mut declared = DeclaredNames::default();
        for (element, name, address) in [
            ("info", "x", "1.0.0.1"),
            ("info", "y", "1.0.0.2"),
            ("c/info", "x", "2.0.0.1"),
            ("c/in/info", "y", "3.0.0.2"),
            ("c/in/info", "y", "00:00:00:00:00:01"),
        ] {
            declared.enter(element);
            declared.declare(name.to_owned(), address.to_owned());
        }
        declared.enter("c/in/e");
        let visible = declared.visible();
        assert_eq!(visible.iter().filter(|it| it.0 == "x").count(), 2);
        let names = declared.resolved(None);
        for (element, x, y) in [
            ("e", "1.0.0.1", "1.0.0.2"),
            ("c/e", "2.0.0.1", "1.0.0.2"),
            ("c/in/e", "2.0.0.1", "3.0.0.2"),
            ("c/in/deeper/e", "2.0.0.1", "3.0.0.2"),
            ("d/e", "1.0.0.1", "1.0.0.2"),
        ] {
            let found = ["x", "y"].map(|name| names.of(element).resolve(name, AddressKind::Ip));
            assert_eq!(found, [x, y].map(|it| Some(it.to_owned())), "{element}");
        }
        assert_eq!(names.of("c/e").resolve("y", AddressKind::Mac), None);
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
