//! Handler calls that an element makes while packets pass through it.

/// Destination of the packets of a call once it has been made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterCall {
    /// There are no packets.
    Nothing,
    /// They leave by the output that the handler answers.
    Leave,
    /// They come to this input of the element again.
    Return(usize),
}

/// Progress of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallState {
    /// It was emitted.
    New,
    /// The control thread has been told.
    Announced,
    /// The control thread makes it.
    Taken,
}

/// A write to a handler that an element has emitted among its batches.
pub struct HandlerCall {
    /// `element.handler`, or a global handler.
    pub handler: String,
    /// The value to write.
    pub value: String,
    /// Destination of its packets.
    pub then: AfterCall,
    /// Its progress.
    pub state: CallState,
}

impl HandlerCall {
    /// A call that was just emitted.
    pub fn new(handler: &str, value: &str, then: AfterCall) -> Box<HandlerCall> {
        let (handler, value) = (handler.to_owned(), value.to_owned());
        Box::new(HandlerCall { handler, value, then, state: CallState::New })
    }
}
