//! What a drawing shows beside the graph itself.

/// How packets move along a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// The element before pushes.
    Push,
    /// The element after pulls.
    Pull,
    /// Not known.
    #[default]
    Agnostic,
}

impl Kind {
    /// The colour of such a connection.
    pub(super) fn color(self) -> &'static str {
        match self {
            Kind::Push => "#1f4e8c",
            Kind::Pull => "#b4531f",
            Kind::Agnostic => "#666666",
        }
    }
}

/// What the caller of a drawing knows about connections and elements.
pub trait PortKinds {
    /// How packets move along a connection, by its index.
    fn connection(&self, connection: usize) -> Kind;

    /// Colour of an element (`#rrggbb`), by its index: that of the worker or group it belongs to.
    fn color(&self, _element: usize) -> Option<String> {
        None
    }

    /// A line of text for an element, by its index: a rate, a cost.
    fn note(&self, _element: usize) -> Option<String> {
        None
    }
}

/// Nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl PortKinds for Plain {
    fn connection(&self, _: usize) -> Kind {
        Kind::Agnostic
    }
}
