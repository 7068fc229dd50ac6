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

        fn merged_config(&self, before: &Self) -> Option<Self> {
            Some(Self(self.0.merged(&before.0)))
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

        fn cleanup(&self, _: &mut Self::Local, cx: &mut Cx) {
            self.0.fragments.clear::<super::rewriter_exits::RewriterExit>(cx);
        }

        fn held(&self, it: &Self::Local) -> usize {
            if it.is_primary() { self.0.fragments.held() } else { 0 }
        }
    };
}
pub(super) use rewriter_methods;
