//! How far a run is: bars on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::Terminal;
use crate::exec::{Event, Observe};
use crate::plan::Plan;
use crate::step::StepId;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ProgressMode {
    /// Bars when standard error is a terminal, plain lines otherwise.
    #[default]
    Auto,
    /// Bars.
    Bar,
    /// A line when a step begins and when it ends.
    Plain,
    /// Nothing.
    None,
}

/// Shows the progress of one run.
pub struct Progress {
    terminal: Terminal,
    style: Style,
    total: usize,
    state: Mutex<State>,
}

enum Style {
    Bars(ProgressBar),
    Lines,
    Nothing,
}

#[derive(Default)]
struct State {
    ended: usize,
    running: BTreeMap<StepId, (Instant, Option<ProgressBar>)>,
}

impl Progress {
    /// Progress of a run of `plan`.
    pub fn new(terminal: &Terminal, mode: ProgressMode, plan: &Plan) -> Self {
        let bars = match mode {
            ProgressMode::Auto => io::stderr().is_terminal(),
            ProgressMode::Bar => true,
            ProgressMode::Plain | ProgressMode::None => false,
        };
        let style = if bars {
            // Steps are weighed by what they are expected to cost, or the remaining time would be
            // taken from the many that take no time at all.
            let bar =
                terminal.bars().add(ProgressBar::new(plan.steps.iter().map(|step| weight(step.cost.cpu_s)).sum()));
            bar.set_style(style_of("{bar:30} {msg} · {elapsed} · about {eta} left"));
            bar.enable_steady_tick(Duration::from_millis(250));
            Style::Bars(bar)
        } else if mode == ProgressMode::None {
            Style::Nothing
        } else {
            Style::Lines
        };
        let progress = Self { terminal: terminal.clone(), style, total: plan.steps.len(), state: Mutex::default() };
        progress.show_count(0);
        progress
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show_count(&self, ended: usize) {
        if let Style::Bars(bar) = &self.style {
            bar.set_message(format!("{ended}/{} steps", self.total));
        }
    }

    fn begin(&self, step: &crate::step::Step, reason: &crate::key::Reason) {
        let mut state = self.state();
        let bar = match &self.style {
            Style::Bars(bar) => {
                let spinner = self.terminal.bars().insert_before(bar, ProgressBar::new_spinner());
                spinner.set_style(style_of("{spinner} {msg} · {elapsed}"));
                spinner.set_message(format!("{}: {}", step.id, step.title));
                spinner.enable_steady_tick(Duration::from_millis(250));
                Some(spinner)
            }
            Style::Lines => {
                self.terminal.say(&format!("{:>7} {}: {} ({reason})", "", step.id, step.title));
                None
            }
            Style::Nothing => None,
        };
        state.running.insert(step.id.clone(), (Instant::now(), bar));
    }

    fn end(&self, step: &crate::step::Step, how: &str) {
        let mut state = self.state();
        state.ended += 1;
        let begun = state.running.remove(&step.id);
        let took =
            begun.as_ref().map(|(start, _)| format!(" in {:.1} s", start.elapsed().as_secs_f32())).unwrap_or_default();
        match &self.style {
            Style::Bars(bar) => {
                if let Some((_, Some(spinner))) = begun {
                    spinner.finish_and_clear();
                }
                bar.inc(weight(step.cost.cpu_s));
                self.show_count(state.ended);
            }
            Style::Lines => self.terminal.say(&format!("[{:>2}/{}] {}: {how}{took}", state.ended, self.total, step.id)),
            Style::Nothing => {}
        }
    }

    /// Ends the display.
    pub fn finish(&self) {
        if let Style::Bars(bar) = &self.style {
            let elapsed = HumanDuration(bar.elapsed());
            bar.finish_and_clear();
            self.terminal.say(&format!("{} of {} steps in {elapsed}", self.state().ended, self.total));
        }
    }
}

impl Observe for Progress {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Started { step, reason } => self.begin(step, reason),
            Event::Fresh { step } => self.end(step, "stands from an earlier run"),
            Event::Done { step, .. } => self.end(step, "done"),
            Event::Failed { step, .. } => self.end(step, "failed"),
        }
    }
}

/// Even a step that costs nothing moves the bar.
fn weight(cpu_s: u32) -> u64 {
    u64::from(cpu_s).max(1)
}

fn style_of(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
