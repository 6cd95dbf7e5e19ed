//! When a connection's next timer runs out.

use std::pin::Pin;
use std::task::Context;
use std::time::Instant;

use tokio::time::Sleep;

/// One timer of the runtime for all those of a connection. QUIC moves its timers with every packet,
/// nearly always to later; the runtime's is moved only to earlier, and after it has rung.
#[derive(Debug, Default)]
pub(super) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// When it rings, and wakes the task of now.
    set: Option<Instant>,
}

impl Timer {
    /// Another task is to be woken from now on, maybe on another runtime, whose own timer is nearer
    /// to it.
    pub(super) fn forget_task(&mut self) {
        *self = Self::default();
    }

    /// Wakes the task at that time, or before.
    pub(super) fn set(&mut self, cx: &mut Context<'_>, at: Option<Instant>) {
        let Some(at) = at else {
            return;
        };
        let rung = self.sleep.as_ref().is_some_and(|sleep| sleep.is_elapsed());
        if !rung && self.set.is_some_and(|set| set <= at) {
            return;
        }
        self.set = Some(at);
        let sleep = match &mut self.sleep {
            Some(sleep) => {
                sleep.as_mut().reset(at.into());
                sleep
            }
            none => none.insert(Box::pin(tokio::time::sleep_until(at.into()))),
        };
        // It may have run out just now.
        if sleep.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_earliest_time_asked_for_and_again_after_that() {
        let start = tokio::time::Instant::now();
        let after = |millis| Some((start + Duration::from_millis(millis)).into_std());
        let mut timer = Timer::default();
        // Asks for these one after the other, then waits; a later one moves nothing.
        for (asked, rings) in [([50, 90], 50), ([90, 70], 70), ([200, 100], 100)] {
            let mut polled = false;
            poll_fn(|cx| {
                if polled {
                    return Poll::Ready(());
                }
                polled = true;
                for millis in asked {
                    timer.set(cx, after(millis));
                }
                Poll::Pending
            })
            .await;
            assert_eq!(start.elapsed(), Duration::from_millis(rings));
        }
    }
}
