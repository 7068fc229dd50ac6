//! Information that a drawing shows in addition to the graph itself.

/// Kind of a connection: how packets move along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ConnectionKind {
    /// The upstream element pushes.
    Push,
    /// The downstream element pulls.
    Pull,
    /// Not known.
    #[default]
    Agnostic,
}

impl ConnectionKind {
    /// Colour of a connection of this kind.
    pub(super) fn color(self) -> &'static str {
        match self {
            ConnectionKind::Push => "#1f4e8c",
            ConnectionKind::Pull => "#b4531f",
            ConnectionKind::Agnostic => "#666666",
        }
    }
}

/// Information about connections and elements that the caller of a drawing supplies.
pub trait DrawingInfo {
    /// Kind of a connection, by its index.
    fn connection(&self, connection: usize) -> ConnectionKind;

    /// Colour of an element (`#rrggbb`), by its index: for example that of its worker or group.
    fn color(&self, _element: usize) -> Option<String> {
        None
    }

    /// A line of text for an element, by its index: for example a rate or a cost.
    fn note(&self, _element: usize) -> Option<String> {
        None
    }
}

/// A [`DrawingInfo`] without information: all connections are agnostic.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDrawingInfo;

impl DrawingInfo for NoDrawingInfo {
    fn connection(&self, _: usize) -> ConnectionKind {
        ConnectionKind::Agnostic
    }
}
