//! The methods of the trait `PerBatch` that all rewriters forward to `Rewriter`.

/// The methods of the trait `PerBatch` that all rewriters have in common.
macro_rules! rewriter_methods {
    () => {
        fn can_take_state(&self, _: &Self) -> bool {
            true
        }

        fn start(&self, it: &mut Self::Local, cx: &mut Cx) -> Result<(), ArgError> {
            self.0.start(it, cx);
            Ok(())
        }

        fn apply_config(&self, it: &mut Self::Local) {
            self.0.settle(it);
        }

        fn after_take_state(&self, it: &mut Self::Local, cx: &mut Cx) {
            self.0.resume(it, cx);
        }

        fn batch(&self, it: &mut Self::Local, port: usize, batch: Batch, cx: &mut Cx) {
            self.0.batch(it, port, batch, cx);
        }

        fn run_timer(&self, it: &mut Self::Local, cx: &mut Cx) {
            self.0.wake(it, cx);
        }

        fn cleanup(&self, it: &mut Self::Local, cx: &mut Cx) {
            self.0.end(it, cx);
        }

        fn held(&self, it: &Self::Local) -> usize {
            self.0.held(it)
        }
    };
}
pub(super) use rewriter_methods;
