//! Watching a run: its history first, then the events that follow, without a gap or a repetition.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::broadcast;

use crate::live::{Item, LiveEvent, LiveLog};
use crate::relay::Relay;

/// The events of a run: those that were, then those that come, also while it waits for people. Ends when the run is over,
/// or no driver will follow.
#[derive(Debug)]
pub struct Watch {
    queue: VecDeque<Arc<LiveEvent>>,
    /// Durable events given out or queued.
    seen: usize,
    receiver: Option<broadcast::Receiver<Item>>,
    log: Option<Arc<LiveLog>>,
    /// Finds the next driver when one is done.
    relay: Option<Relay>,
}

impl Watch {
    /// The events of a driver's log: those so far, then those that follow.
    pub(crate) fn of(log: &Arc<LiveLog>) -> Self {
        let (durable, receiver) = log.subscribe();
        Self { seen: durable.len(), queue: durable.into(), receiver, log: Some(log.clone()), relay: None }
    }

    /// The events of a run without a driver.
    pub(crate) fn of_history(events: impl Iterator<Item = LiveEvent>) -> Self {
        let queue: VecDeque<_> = events.map(Arc::new).collect();
        Self { seen: queue.len(), queue, receiver: None, log: None, relay: None }
    }

    /// Goes on with the run's next driver when this one is done.
    pub(crate) fn relayed(self, relay: Relay) -> Self {
        Self { relay: Some(relay), ..self }
    }

    /// The next event, or `None` after the last: that is [`LiveEvent::Finished`] when the run is over, and
    /// [`LiveEvent::Suspended`] or any other when the host stopped driving it.
    ///
    /// Cancel safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(Arc::unwrap_or_clone(event));
            }
            let Some(receiver) = self.receiver.as_mut() else {
                let Some(next) = self.relay.as_mut()?.next(self.log.as_ref()).await else {
                    // No driver follows: the means to find one are dropped.
                    self.relay = None;
                    return None;
                };
                self.queue = next.queue.into_iter().skip(self.seen).collect();
                (self.seen, self.receiver, self.log) = (self.seen.max(next.seen), next.receiver, next.log);
                continue;
            };
            match receiver.recv().await {
                // A driver that is made anew tells the run's history first.
                Ok(item) if item.durable <= self.seen && !item.event.is_hint() => {}
                Ok(item) => {
                    self.seen = self.seen.max(item.durable);
                    return Some(Arc::unwrap_or_clone(item.event));
                }
                Err(broadcast::error::RecvError::Lagged(_)) => self.catch_up(),
                Err(broadcast::error::RecvError::Closed) => self.receiver = None,
            }
        }
    }

    /// Too slow: hints are lost, the durable events missed come from the log.
    fn catch_up(&mut self) {
        let Some(log) = &self.log else { return };
        let fresh = Self::of(log);
        self.queue = fresh.queue.into_iter().skip(self.seen).collect();
        self.seen = self.seen.max(fresh.seen);
        self.receiver = fresh.receiver;
    }
}

#[cfg(test)]
mod tests {
    use base::Timestamp;

    use super::*;
    use crate::live::BACKLOG;

    fn durable(step: u32) -> LiveEvent {
        LiveEvent::HostSaid { at: Timestamp::from_millis(0), step, text: String::new() }
    }

    fn hint() -> LiveEvent {
        LiveEvent::TextDelta { at: Timestamp::from_millis(0), text: "x".into() }
    }

    async fn steps(watch: &mut Watch) -> Vec<u32> {
        let mut steps = Vec::new();
        while let Some(event) = watch.next().await {
            if let LiveEvent::HostSaid { step, .. } = event {
                steps.push(step);
            }
        }
        steps
    }

    #[tokio::test]
    async fn history_then_what_follows_without_gap_or_double() {
        let log = LiveLog::new();
        log.load([durable(1), durable(2)].into_iter());
        let mut early = Watch::of(&log);
        log.publish_hint(hint());
        log.publish_durable(durable(3));
        let mut late = Watch::of(&log);
        log.publish_durable(durable(4));
        log.close();
        assert_eq!(steps(&mut early).await, [1, 2, 3, 4]);
        assert_eq!(steps(&mut late).await, [1, 2, 3, 4]);
        assert_eq!(steps(&mut Watch::of(&log)).await, [1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn a_slow_watcher_loses_hints_only() {
        let log = LiveLog::new();
        let mut watch = Watch::of(&log);
        let mut expected = Vec::new();
        for step in 0..50 {
            log.publish_durable(durable(step));
            expected.push(step);
            for _ in 0..BACKLOG / 10 {
                log.publish_hint(hint());
            }
        }
        let first = watch.next().await;
        assert!(matches!(first, Some(LiveEvent::HostSaid { step: 0, .. })), "{first:?}");
        log.publish_durable(durable(50));
        expected.push(50);
        log.close();
        expected.remove(0);
        assert_eq!(steps(&mut watch).await, expected);
    }
}
