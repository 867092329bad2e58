//! Running a program and looking at what it took.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What one run of a program took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// By the clock on the wall.
    pub wall: Duration,
    /// Processor time of the process itself, without its children.
    pub own_cpu: Duration,
    /// The most memory that the process itself had, in KiB; 0 where the system does not tell.
    pub peak_kib: u64,
}

/// A command with nothing on its standard input and output.
#[expect(clippy::disallowed_methods, reason = "a measurement, not the program")]
pub fn quiet(program: impl AsRef<Path>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// Runs `command`, which must end well, and tells how long it took. Nothing runs beside it.
pub fn time(command: &mut Command) -> Duration {
    time_to(command, 0)
}

/// Runs `command`, which must end with `code`, and tells how long it took. Nothing runs beside it.
pub fn time_to(command: &mut Command, code: i32) -> Duration {
    let start = Instant::now();
    let status = command.status().unwrap();
    let wall = start.elapsed();
    assert_eq!(status.code(), Some(code), "{command:?} ended with {status}");
    wall
}

/// Runs `command`, which must end well, looking at it every `pause`.
pub fn watch(command: &mut Command, pause: Duration) -> Taken {
    watch_to(command, pause, 0)
}

/// Runs `command`, which must end with `code`, looking at it every `pause`.
///
/// The figures are of the process alone: `ru_maxrss` of a child counts the compilers that it waited for.
pub fn watch_to(command: &mut Command, pause: Duration, code: i32) -> Taken {
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut taken = Taken::default();
    let ended = AtomicBool::new(false);
    let pid = child.id();
    let status = std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut last = Taken::default();
            while !ended.load(Ordering::Relaxed) {
                look(pid, &mut last);
                std::thread::sleep(pause);
            }
            last
        });
        let status = wait(&mut child);
        taken.wall = start.elapsed();
        ended.store(true, Ordering::Relaxed);
        let last = looks.join().unwrap();
        (taken.own_cpu, taken.peak_kib) = (last.own_cpu, last.peak_kib);
        status
    });
    assert_eq!(status.code(), Some(code), "{command:?} ended with {status}");
    taken
}

fn wait(child: &mut Child) -> std::process::ExitStatus {
    child.wait().unwrap()
}

/// Both figures only grow, so the last look is the one to keep; proc(5).
fn look(pid: u32, last: &mut Taken) {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return };
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    if let Some(peak) = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.trim().parse().ok()) {
        last.peak_kib = peak;
    }
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return };
    // The name may contain anything, so fields are counted from its closing parenthesis.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // Linux shows clock ticks to programs at 100 Hz on every machine this runs on.
    last.own_cpu = last.own_cpu.max(Duration::from_millis((ticks(11) + ticks(12)) * 10));
}

/// Runs each of `turns` once in every round, and gives the times of each. The first round, in which
/// caches are filled, does not count.
pub fn in_turns(rounds: usize, turns: &mut [&mut dyn FnMut() -> Duration]) -> Vec<Vec<Duration>> {
    let mut times = vec![Vec::new(); turns.len()];
    for round in 0..=rounds {
        for (turn, times) in turns.iter_mut().zip(&mut times) {
            let time = turn();
            if round > 0 {
                times.push(time);
            }
        }
    }
    times
}

/// The first line that `program --version` (or `arguments`) prints; nothing when there is none.
#[expect(clippy::disallowed_methods, reason = "a measurement, not the program")]
pub fn version(program: impl AsRef<Path>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program.as_ref()).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().filter(|_| output.status.success()).map(|line| line.trim().to_owned())
}
