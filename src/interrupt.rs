//! The wish to stop, and the process groups that must end with it.
//!
//! One [`Interrupt`] exists for a run. Whatever takes long asks [`Interrupt::check`] now and then;
//! children are told at once, because the person at the terminal is waiting for them to be gone.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Class, Fault};

/// How long a process group has to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(3);

/// Shared by everything that runs.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    wanted: AtomicBool,
    groups: Mutex<BTreeSet<i32>>,
}

/// The run was interrupted.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Fault for Interrupted {
    fn class(&self) -> Class {
        Class::Interrupted
    }

    fn hint(&self) -> Option<String> {
        Some("run the same command with --resume to go on from here".into())
    }
}

impl Interrupt {
    /// An error once an interrupt is wanted.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.0.wanted.load(Ordering::SeqCst) { Err(Interrupted) } else { Ok(()) }
    }

    /// Waits for as long as `delay`, or until an interrupt is wanted, which is an error.
    pub fn sleep(&self, delay: Duration) -> Result<(), Interrupted> {
        const LOOK: Duration = Duration::from_millis(50);
        let end = Instant::now() + delay;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Wants the run to stop: every registered process group gets SIGTERM now, and SIGKILL after a
    /// short grace.
    pub fn raise(&self) {
        self.0.wanted.store(true, Ordering::SeqCst);
        self.signal(Signal::TERM);
        let state = self.clone();
        std::thread::spawn(move || {
            std::thread::sleep(GRACE);
            state.signal(Signal::KILL);
        });
    }

    /// Raises the interrupt on SIGINT, SIGTERM and SIGHUP from now on. A second one ends the process
    /// at once: whoever sends it does not want to wait for what the first one did not reach.
    ///
    /// A SIGHUP that was ignored when the process began (`nohup`) stays ignored.
    pub fn listen(&self) -> std::io::Result<()> {
        let mut wanted = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            wanted.push(SIGHUP);
        }
        let mut signals = Signals::new(wanted)?;
        let interrupt = self.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if interrupt.check().is_err() {
                    interrupt.signal(Signal::KILL);
                    std::process::exit(Class::Interrupted.exit_code().into());
                }
                interrupt.raise();
            }
        });
        Ok(())
    }

    /// Remembers a child's process group until the guard is dropped; what is left of the group is
    /// killed then, since a step's processes must not outlive the step.
    pub fn watch(&self, pid: u32) -> Option<Watched> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        self.groups().insert(pid.as_raw_pid());
        // The interrupt may have come between the spawn and this registration.
        if self.check().is_err() {
            let _ = kill_process_group(pid, Signal::TERM);
        }
        Some(Watched { interrupt: self.clone(), group: pid })
    }

    fn signal(&self, signal: Signal) {
        for group in self.groups().iter().filter_map(|&raw| Pid::from_raw(raw)) {
            // A group that is gone already is what we want.
            let _ = kill_process_group(group, signal);
        }
    }

    fn groups(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the signal is ignored in this process, where the system tells (`SigIgn` in proc(5)).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A registered process group; dropping it ends what is left of the group.
#[derive(Debug)]
pub struct Watched {
    interrupt: Interrupt,
    group: Pid,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        self.interrupt.groups().remove(&self.group.as_raw_pid());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_an_interrupt() {
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert!(matches!(interrupt.sleep(Duration::from_hours(1)), Err(Interrupted)));
        Interrupt::default().sleep(Duration::ZERO).unwrap();
    }
}
