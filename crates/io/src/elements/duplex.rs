//! Elements that send their input to a device, and emit what they receive from it.

use castanet_element::prelude::*;

/// The device of such an element, as the configuration describes it; methods are called as those
/// of [`Source`] and [`PerBatch`].
pub trait DuplexDevice {
    type State: Local;
    type Exit: Fate;
    /// Whether all workers send to one device.
    const SHARED: bool;

    fn open(&self, local: &mut Self::State, cx: &mut Cx) -> Result<(), ArgError>;
    fn start(&self, _local: &mut Self::State) -> Result<(), ArgError> {
        Ok(())
    }
    fn receive(&self, local: &mut Self::State, n: usize, cx: &mut Cx) -> NextRun;
    /// Sends the packets that wait, then `batch`.
    fn send(&self, local: &mut Self::State, batch: Batch, cx: &mut Cx);
    fn held(local: &Self::State) -> usize;
    fn close(&self, local: &mut Self::State, cx: &mut Cx);
}

/// Implements the element traits of a type that holds a [`DuplexDevice`].
macro_rules! impl_duplex {
    ($element:ident($device:ty)) => {
        impl Source for $element {
            type Local = <$device as crate::elements::duplex::DuplexDevice>::State;
            type Fate = <$device as crate::elements::duplex::DuplexDevice>::Exit;

            fn can_take_state(&self, _: &$element) -> bool {
                false // A new element opens its device anew.
            }

            fn init(&self, local: &mut Self::Local, cx: &mut Cx) -> Result<(), ArgError> {
                crate::elements::duplex::DuplexDevice::open(&self.0, local, cx)
            }

            fn start(&self, local: &mut Self::Local, _: &mut Cx) -> Result<(), ArgError> {
                crate::elements::duplex::DuplexDevice::start(&self.0, local)
            }

            fn produce(&self, local: &mut Self::Local, n: usize, cx: &mut Cx) -> NextRun {
                crate::elements::duplex::DuplexDevice::receive(&self.0, local, n, cx)
            }

            fn cleanup(&self, local: &mut Self::Local, cx: &mut Cx) {
                crate::elements::duplex::DuplexDevice::close(&self.0, local, cx);
            }
        }

        impl PerBatch for $element {
            type On = on::Any;
            type Local = <$device as crate::elements::duplex::DuplexDevice>::State;
            type Fate = <$device as crate::elements::duplex::DuplexDevice>::Exit;
            const SHARED: bool = <$device as crate::elements::duplex::DuplexDevice>::SHARED;

            fn batch(&self, local: &mut Self::Local, _: usize, batch: Batch, cx: &mut Cx) {
                crate::elements::duplex::DuplexDevice::send(&self.0, local, batch, cx);
            }

            fn run_timer(&self, local: &mut Self::Local, cx: &mut Cx) {
                crate::elements::duplex::DuplexDevice::send(&self.0, local, Batch::new(), cx);
            }

            fn held(&self, local: &Self::Local) -> usize {
                <$device as crate::elements::duplex::DuplexDevice>::held(local)
            }
        }
    };
}
pub(super) use impl_duplex;
