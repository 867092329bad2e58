//! The files that a trial is made of, looked at before a browser is started: one that cannot be used
//! is the caller's affair, and should not cost a minute, nor pass for a fault of the library.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde::de::IgnoredAny;

use super::weights::{self, WeightsError};
use super::{Library, Request, SmokeError, Subject, engine, script};

/// Refuses what cannot be used for the trial of `subject`.
pub(super) fn check(subject: &Subject, request: &Request) -> Result<(), SmokeError> {
    match subject {
        Subject::Library(library) => check_library(library, request),
        // Its files were unpacked and held against their manifest.
        Subject::Generator(_) => Ok(()),
    }
}

fn check_library(library: &Library, request: &Request) -> Result<(), SmokeError> {
    check_file(&library.library, "the library")?;
    check_file(&library.browser_module, "the browser module")?;
    let engine = library.engine.as_deref().filter(|_| request.engine);
    if let Some(engine) = engine {
        check_file(engine, "the engine")?;
    }
    let weights = request.weights.as_deref().or(library.weights.as_deref()).filter(|_| request.ballast == 0);
    if let Some(weights) = weights {
        check_weights(weights, engine.is_some())?;
    }
    let beside = weights.map(|weights| weights.join(script::REFERENCE)).filter(|path| path.is_file());
    match request.reference.as_ref().or(beside.as_ref()) {
        Some(path) => script::check_file(path).map_err(|reason| refuse(path, "the reference", reason)),
        None => Ok(()),
    }
}

fn check_weights(directory: &Path, with_engine: bool) -> Result<(), SmokeError> {
    match weights::read_extent(directory) {
        // What these mean is said by the trial, in its report.
        Ok(_) | Err(WeightsError::Type { .. } | WeightsError::None | WeightsError::TooLarge) => {}
        Err(error) => {
            let reason = match &error {
                WeightsError::Io(source) => format!("{}: {source}", weights::INDEX),
                error => error.to_string(),
            };
            return Err(refuse(directory, "the directory of weights", reason));
        }
    }
    if with_engine && engine::is_complete(directory) {
        for name in [engine::CONFIG, engine::TOKENIZER] {
            let path = directory.join(name);
            let read = File::open(&path).map_err(|error| error.to_string()).and_then(|file| {
                serde_json::from_reader::<_, IgnoredAny>(BufReader::new(file)).map_err(|error| error.to_string())
            });
            read.map_err(|reason| refuse(&path, "what the engine asks for", reason))?;
        }
    }
    Ok(())
}

fn check_file(path: &Path, what: &'static str) -> Result<(), SmokeError> {
    let unreadable = |error: io::Error| refuse(path, what, error.to_string());
    // Asked before it is opened: opening a pipe would wait for ever.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(refuse(path, what, "it is not a regular file".into()));
    }
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(2).read_to_end(&mut head)).map_err(unreadable)?;
    match head.as_slice() {
        [] => Err(refuse(path, what, "it is empty".into())),
        [0x1f, 0x8b] => Err(refuse(path, what, "it is packed: unpack it, or name its manifest instead".into())),
        _ => Ok(()),
    }
}

fn refuse(path: &Path, what: &'static str, reason: String) -> SmokeError {
    SmokeError::Input { path: path.to_owned(), what, reason }
}
