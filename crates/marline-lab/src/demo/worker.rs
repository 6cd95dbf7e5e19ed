use std::future::Future;
use std::io;
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A thread with a runtime of its own, so that no part of a run waits for another's turn and a
/// delay is the session's.
///
/// Dropping it asks it to stop and waits until it has.
#[derive(Debug)]
pub(super) struct Worker<T> {
    stop: CancellationToken,
    result: oneshot::Receiver<T>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Runs what `work` makes of the token on a thread called `name`, which must end soon after the
    /// token is cancelled.
    pub(super) fn start<F>(
        name: &str,
        work: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = T>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = CancellationToken::new();
        let (send, result) = oneshot::channel();
        let token = stop.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // Nobody waits for the result of a run that was given up.
                let _ = send.send(runtime.block_on(work(token)));
            })?;
        Ok(Worker {
            stop,
            result,
            thread: Some(thread),
        })
    }

    /// Waits for the work to end by itself; `None` if it panicked. Cancel safe; not to be called
    /// again after that.
    pub(super) async fn result(&mut self) -> Option<T> {
        (&mut self.result).await.ok()
    }

    /// Asks the work to stop and waits for what it has to say; `None` as [`result`](Self::result).
    pub(super) async fn stop(mut self) -> Option<T> {
        self.stop.cancel();
        self.result().await
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been reported by the thread.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_ends_by_itself_when_asked_and_when_dropped() {
        let mut quick = Worker::start("quick", |_| async { 1 }).unwrap();
        assert_eq!(quick.result().await, Some(1));
        let asked = Worker::start("asked", |stop| async move {
            stop.cancelled().await;
            2
        });
        assert_eq!(asked.unwrap().stop().await, Some(2));
        let (ended, seen) = std::sync::mpsc::channel();
        let dropped = Worker::start("dropped", |stop| async move {
            stop.cancelled().await;
            let _ = ended.send(());
        });
        drop(dropped.unwrap());
        assert!(seen.try_recv().is_ok(), "dropping waits for the end");
    }
}
