//! Announces the component being compiled, once that takes long: loading from the cache is well below that.

use std::time::Duration;

use motor::Preparing;
use tokio::sync::watch;

/// The time that a component may take to load before it is mentioned.
const UNNOTICED: Duration = Duration::from_millis(300);

/// The component that takes long to load now, if any. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Preparations(watch::Sender<Option<Preparing>>);

impl Default for Preparations {
    fn default() -> Self {
        Self(watch::channel(None).0)
    }
}

impl Preparations {
    /// Subscribes to the announcement.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Preparing>> {
        self.0.subscribe()
    }

    /// Loads a component, and announces it if that takes long. `loading` must not block its thread.
    pub async fn of<T>(&self, preparing: Preparing, loading: impl Future<Output = T>) -> T {
        tokio::pin!(loading);
        tokio::select! {
            biased;
            loaded = &mut loading => return loaded,
            () = tokio::time::sleep(UNNOTICED) => {}
        }
        self.0.send_replace(Some(preparing.clone()));
        let _over = Over { sender: &self.0, preparing };
        loading.await
    }
}

/// Withdraws the announcement, also when the load is abandoned. Another load may have replaced it since.
struct Over<'a> {
    sender: &'a watch::Sender<Option<Preparing>>,
    preparing: Preparing,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.sender.send_if_modified(|said| {
            let mine = said.as_ref() == Some(&self.preparing);
            if mine {
                *said = None;
            }
            mine
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_takes_long_is_said() {
        let preparations = Preparations::default();
        let mut told = preparations.subscribe();
        let bash = Preparing { component: "bash".into(), number: 2, of: 4 };
        let taking = |millis| tokio::time::sleep(Duration::from_millis(millis));
        preparations.of(bash.clone(), taking(200)).await;
        assert!(!told.has_changed().unwrap());
        {
            let long = preparations.of(bash.clone(), taking(60_000));
            tokio::pin!(long);
            tokio::select! { () = &mut long => panic!("it takes a minute"), changed = told.changed() => changed.unwrap() }
            assert_eq!(told.borrow_and_update().as_ref(), Some(&bash));
        }
        // The load was abandoned.
        assert_eq!(told.borrow_and_update().as_ref(), None);
        assert_eq!(bash.to_string(), "preparing tools for the first time: bash (2 of 4)");
    }
}
