//! The program's clock: starts where the call says and advances by a fixed amount with each look.
//!
//! No real time gets in, so a run can be repeated exactly, and a program cannot time its host.

use std::cell::Cell;

/// Microseconds the clock advances with each look: a program that waits for a second to pass gets there in 100,000 looks.
const MICROSECONDS_PER_LOOK: f64 = 10.0;

thread_local! {
    static NOW_MICROSECONDS: Cell<f64> = const { Cell::new(0.0) };
}

/// Sets the clock, in milliseconds since the epoch.
pub fn set(now_ms: u64) {
    #[expect(clippy::cast_precision_loss, reason = "exact until the year 287396")]
    NOW_MICROSECONDS.set(now_ms as f64 * 1000.0);
}

/// One look, in microseconds since the epoch.
fn look() -> f64 {
    let now = NOW_MICROSECONDS.get();
    NOW_MICROSECONDS.set(now + MICROSECONDS_PER_LOOK);
    now
}

/// The time as the engine's C library asks for it.
#[allow(unsafe_code, reason = "the C library links it by this name")]
#[unsafe(no_mangle)]
extern "C" fn __rquickjs_host_now_us() -> f64 {
    look()
}

#[cfg(test)]
mod tests {
    #[test]
    fn advances_with_each_look() {
        super::set(5);
        assert_eq!((super::look(), super::look()), (5000.0, 5010.0));
    }
}
