//! Rows of figures.

use std::time::Duration;

/// A comparison with a peer, or a figure with a goal of its own.
#[derive(Debug, Default, Clone)]
pub struct Row {
    /// What is measured.
    pub subject: String,
    /// Beside what, with its version.
    pub peer: String,
    /// How often.
    pub n: usize,
    /// Our median.
    pub ours: String,
    /// The peer's median.
    pub theirs: String,
    /// How they compare.
    pub ratio: String,
    /// The goal, and whether it was met.
    pub goal: Option<(String, bool)>,
    /// The most memory that the measured process had, in KiB.
    pub peak_kib: Option<u64>,
}

const HEADS: [&str; 8] = ["subject", "peer", "n", "ours", "peer's", "ratio", "goal", "peak RSS"];

/// Prints the rows under `title`, as a Markdown table.
pub fn print(title: &str, rows: &[Row]) {
    let mut lines = vec![HEADS.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    println!("\n{title}\n");
    for (number, line) in lines.iter().enumerate() {
        let padded: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        println!("| {} |", padded.join(" | "));
        if number == 0 {
            println!("|{}|", widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|"));
        }
    }
}

fn cells(row: &Row) -> Vec<String> {
    let goal = row.goal.as_ref();
    let goal = goal.map(|(goal, met)| format!("{goal}: {}", if *met { "met" } else { "missed" })).unwrap_or_default();
    let n = if row.n == 0 { String::new() } else { row.n.to_string() };
    let peak = row.peak_kib.filter(|peak| *peak > 0).map(mib).unwrap_or_default();
    [&row.subject, &row.peer, &n, &row.ours, &row.theirs, &row.ratio, &goal, &peak].map(String::clone).to_vec()
}

/// Tells on what machine, and how busy it is.
pub fn describe_machine() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned()));
    let load = read("/proc/loadavg");
    println!(
        "{} cores of {}, load {}",
        std::thread::available_parallelism().map_or(1, usize::from),
        model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        load.split(' ').take(3).collect::<Vec<_>>().join(" ")
    );
}

/// The middle one of `times`.
pub fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// `a / b`.
pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// A duration for people.
pub fn show(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// KiB as MiB.
pub fn mib(kib: u64) -> String {
    format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024)
}
