//! A command step, written in a chain of calls.

use std::collections::BTreeMap;

use super::{Draft, Result};
use crate::step::{Action, Cost, OutputRef, Run, Step};

/// A step that runs commands, in the making.
pub(in crate::recipe) struct RunDraft<'d, 'a> {
    draft: &'d mut Draft<'a>,
    id: String,
    title: String,
    commands: Vec<Vec<String>>,
    directory: String,
    environment: BTreeMap<String, String>,
    after: Vec<(String, String)>,
}

impl<'d, 'a> RunDraft<'d, 'a> {
    pub(super) fn new(draft: &'d mut Draft<'a>, id: &str, title: &str) -> Self {
        Self {
            draft,
            id: id.to_owned(),
            title: title.to_owned(),
            commands: Vec::new(),
            directory: "${tmp}".to_owned(),
            environment: BTreeMap::new(),
            after: Vec::new(),
        }
    }

    /// One more command: program and arguments as templates.
    pub(in crate::recipe) fn command(mut self, words: &[&str]) -> Self {
        self.commands.push(words.iter().map(|&word| word.to_owned()).collect());
        self
    }

    /// The working directory; the scratch directory unless said otherwise.
    pub(in crate::recipe) fn directory(mut self, directory: &str) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    /// Waits for an output that no template names.
    pub(in crate::recipe) fn after(mut self, step: &str, output: &str) -> Self {
        self.after.push((step.to_owned(), output.to_owned()));
        self
    }

    /// One more environment variable.
    pub(in crate::recipe) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds the step.
    pub(in crate::recipe) fn makes(self, outputs: &[&str], cost: Cost) -> Result<()> {
        let draft = self.draft;
        let mut commands = Vec::new();
        for words in &self.commands {
            commands.push(words.iter().map(|word| draft.template(word)).collect::<Result<Vec<_>>>()?);
        }
        let mut environment = BTreeMap::new();
        for (name, value) in self.environment {
            let value = draft.template(&value)?;
            environment.insert(name, value);
        }
        let mut inputs = Vec::new();
        for (step, output) in self.after {
            inputs.push(OutputRef { step: draft.id(&step)?, output });
        }
        let step = Step {
            id: draft.id(&self.id)?,
            title: self.title,
            action: Action::Run(Run { commands, directory: draft.template(&self.directory)? }),
            inputs,
            outputs: outputs.iter().map(|&output| output.to_owned()).collect(),
            environment,
            network: false,
            cost,
        };
        draft.push(step);
        Ok(())
    }
}
