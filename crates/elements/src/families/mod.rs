//! Families: elements of one purpose, with the pages of the manual that compare them.

mod filters;
mod flow_control;
mod sources;
mod translation;

use castanet_element::class::Class;
use castanet_element::manual;
use std::collections::BTreeSet;

/// An element of a family: its class, when to use it, and how it differs from the others.
pub type FamilyRow = (&'static str, &'static str, &'static str);

/// Elements of one purpose.
pub struct Family {
    /// The page's file in the folder of the manual.
    pub file: &'static str,
    /// The page's heading: a question.
    pub title: &'static str,
    /// The text above the table.
    pub text: &'static str,
    /// The elements.
    pub rows: &'static [FamilyRow],
}

/// All families, in the order of the manual's index.
pub const FAMILIES: &[&Family] = &[
    &flow_control::SHAPERS,
    &flow_control::QUEUES,
    &flow_control::SCHEDULERS,
    &filters::CLASSIFIERS,
    &filters::LOOKUPS,
    &filters::SWITCHES,
    &filters::COUNTERS,
    &sources::SOURCES,
    &sources::DEVICES,
    &translation::ENCAPSULATION,
    &translation::REWRITERS,
];

impl Family {
    /// Returns the page, as Markdown.
    pub fn page(&self) -> String {
        let mut page = format!("# {}\n\n{}\n\n", self.title, self.text);
        page += "| element | use it when | difference |\n|---|---|---|\n";
        for (class, when, difference) in self.rows {
            page += &format!("| [{class}]({class}.md) | {when} | {difference} |\n");
        }
        page
    }

    /// Whether a class is in the family.
    pub fn contains(&self, class: &str) -> bool {
        self.rows.iter().any(|row| row.0 == class)
    }
}

/// Returns the rows of a manual page about related classes: the families of the class, the classes
/// that its text names, and those whose text names it.
pub fn see_also(class: &Class, all: &[&Class]) -> Vec<String> {
    let name = class.spec.class;
    let families = FAMILIES.iter().filter(|family| family.contains(name));
    let mut rows: Vec<String> =
        families.map(|family| format!("[{}]({})", family.title, family.file)).collect();
    let named: BTreeSet<&str> = manual::mentions(class).collect();
    let is_related = |other: &&&Class| {
        let other_name = other.spec.class;
        other_name != name
            && (named.contains(other_name) || manual::mentions(other).any(|it| it == name))
    };
    let related = all.iter().filter(is_related).map(|other| {
        let summary = manual::summary(other).split_whitespace().collect::<Vec<_>>().join(" ");
        format!("[{0}]({0}.md): {summary}", other.spec.class)
    });
    rows.extend(related);
    rows
}
