//! A headless Chromium with a profile of its own, and one page in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::protocol::{Connection, ProtocolError};
use crate::interrupt::Interrupt;
use crate::printable::cut;
use crate::process::log::StepLog;
use crate::process::{CommandError, Companion, Invocation};

/// The names under which distributions install it.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// The page is ours and comes from this machine, so that the sandbox, which root and containers do not
/// have, can be left out. The collector is exposed to the page's instruments.
const FLAGS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu-sandbox",
    "--enable-unsafe-webgpu",
    "--enable-features=Vulkan",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--no-first-run",
    "--no-default-browser-check",
    "--js-flags=--expose-gc",
    "--remote-debugging-pipe",
];

/// Makes Chromium's own software renderer the adapter: the same everywhere, without 16-bit floats.
const SOFTWARE: &str = "--use-webgpu-adapter=swiftshader";

/// The lines of the browser's own output that a report shows.
const TAIL: usize = 8;

/// A running browser. Dropping it ends every process of it and removes its profile.
pub struct Browser {
    connection: Connection,
    log: StepLog,
    // Dropped in this order: the profile goes when nobody writes to it any more.
    _companion: Companion,
    _home: TempDir,
}

/// The browser cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Nothing that can be started.
    #[error("{0}")]
    Unusable(String),
    /// It does not answer.
    #[error("{source}; its last lines are: {tail}")]
    Silent {
        /// Why not.
        source: ProtocolError,
        /// The end of its output.
        tail: String,
    },
}

/// Which browser to start; an error says what was looked for.
pub fn find(given: Option<&Path>) -> Result<PathBuf, String> {
    match given {
        Some(path) => which::which(path)
            .map_err(|_| format!("there is no program {}: name another with --browser", path.display())),
        None => NAMES.iter().find_map(|name| which::which(name).ok()).ok_or_else(|| {
            let names = NAMES.join(", ");
            format!("none of {names} is on PATH: install Chromium, or name one that lies elsewhere with --browser")
        }),
    }
}

impl Browser {
    /// Starts the program. It has until `deadline` for everything.
    pub fn launch(program: &Path, gpu: bool, deadline: Instant, interrupt: &Interrupt) -> Result<Self, LaunchError> {
        let unusable = |error: &dyn std::error::Error| LaunchError::Unusable(format!("{}: {error}", program.display()));
        let home = tempfile::Builder::new().prefix("smoke-").tempdir().map_err(|error| unusable(&error))?;
        let log = StepLog::create(&home.path().join("browser.log")).map_err(|error| unusable(&error))?;
        let (for_browser, to_browser) = io::pipe().map_err(|error| unusable(&error))?;
        let (from_browser, of_browser) = io::pipe().map_err(|error| unusable(&error))?;
        let invocation = invocation(program, gpu, home.path());
        let companion = Companion::start(&invocation, for_browser, of_browser, &log, interrupt);
        let companion = companion.map_err(|error| match error {
            CommandError::Interrupted(interrupted) => {
                LaunchError::Silent { source: interrupted.into(), tail: String::new() }
            }
            CommandError::Start { source, .. } => unusable(&source),
            error => unusable(&error),
        })?;
        let connection = Connection::open(to_browser, from_browser, deadline, interrupt);
        let connection = connection.map_err(|error| unusable(&error))?;
        Ok(Self { connection, log, _companion: companion, _home: home })
    }

    /// Its name and version. The first question, which one that cannot run does not answer.
    pub fn version(&mut self) -> Result<String, LaunchError> {
        match self.connection.call("Browser.getVersion", &json!({}), None) {
            Ok(answer) => Ok(answer["product"].as_str().unwrap_or("unnamed").to_owned()),
            Err(source) => Err(LaunchError::Silent { source, tail: self.tail() }),
        }
    }

    /// Opens `url` and waits until it is loaded.
    pub fn open(&mut self, url: &str) -> Result<Page<'_>, ProtocolError> {
        let connection = &mut self.connection;
        let target = connection.call("Target.createTarget", &json!({ "url": "about:blank" }), None)?;
        let target = target["targetId"].clone();
        let attach = json!({ "targetId": target, "flatten": true });
        let session = connection.call("Target.attachToTarget", &attach, None)?;
        let session = session["sessionId"].as_str().unwrap_or_default().to_owned();
        let mut page = Page { connection, session, target, complaints: Vec::new() };
        for domain in ["Runtime", "Log", "Page", "Inspector"] {
            page.ask(&format!("{domain}.enable"), &json!({}))?;
        }
        let answer = page.ask("Page.navigate", &json!({ "url": url }))?;
        if let Some(reason) = answer["errorText"].as_str() {
            return Err(ProtocolError::Refused { method: "Page.navigate".into(), message: reason.into() });
        }
        page.connection.wait_for("Page.loadEventFired")?;
        Ok(page)
    }

    /// The end of its output, for a report.
    pub fn tail(&self) -> String {
        let tail = self.log.tail(TAIL);
        tail.lines().map(|line| cut(line, 300)).collect::<Vec<_>>().join("\n")
    }
}

fn invocation(program: &Path, gpu: bool, home: &Path) -> Invocation {
    let mut arguments: Vec<OsString> = FLAGS.iter().map(Into::into).collect();
    if !gpu {
        arguments.push(SOFTWARE.into());
    }
    let mut profile = OsString::from("--user-data-dir=");
    profile.push(home.join("profile"));
    arguments.extend([profile, "about:blank".into()]);
    let mut environment = BTreeMap::new();
    for name in ["PATH", "LANG", "LD_LIBRARY_PATH", "VK_ICD_FILENAMES", "VK_DRIVER_FILES"] {
        if let Some(value) = std::env::var_os(name) {
            environment.insert(name.to_owned(), value);
        }
    }
    for name in ["HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        environment.insert(name.to_owned(), home.into());
    }
    Invocation { program: program.to_owned(), arguments, directory: home.to_owned(), environment, isolated: false }
}

/// What a page, or the browser about it, complained of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Whether it is an error, and no mere warning.
    pub serious: bool,
    /// Its text.
    pub text: String,
}

/// An open page.
pub struct Page<'a> {
    connection: &'a mut Connection,
    session: String,
    target: Value,
    complaints: Vec<Complaint>,
}

/// A call did not give a value.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The page's script threw.
    #[error("{0}")]
    Threw(String),
    /// The page cannot be asked.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

impl Page<'_> {
    /// Calls `smoke.<name>(argument)` in the page, and waits for its promise.
    pub fn call(&mut self, name: &str, argument: &Value) -> Result<Value, PageError> {
        let expression = format!("smoke.{name}({argument})");
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", &params);
        self.collect();
        let mut answer = answer?;
        if let Some(details) = answer.get("exceptionDetails") {
            return Err(PageError::Threw(exception_text(details)));
        }
        Ok(answer["result"]["value"].take())
    }

    /// What was complained of so far.
    pub fn complaints(&mut self) -> &[Complaint] {
        self.collect();
        &self.complaints
    }

    /// Closes the page, which frees what it holds.
    pub fn close(self) -> Result<(), ProtocolError> {
        self.connection.call("Target.closeTarget", &json!({ "targetId": self.target }), None).map(|_| ())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, ProtocolError> {
        self.connection.call(method, params, Some(&self.session))
    }

    fn collect(&mut self) {
        for event in self.connection.take_events() {
            self.complaints.extend(complaint(&event.method, &event.params));
        }
    }
}

fn complaint(method: &str, params: &Value) -> Option<Complaint> {
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (level, text) = match method {
        "Log.entryAdded" => {
            let entry = &params["entry"];
            (entry["level"].as_str()?, format!("{}: {}", text_of(&entry["source"]), text_of(&entry["text"])))
        }
        "Runtime.consoleAPICalled" => {
            let words = params["args"].as_array()?.iter().map(|argument| match argument.get("value") {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => text_of(&argument["description"]),
            });
            let kind = params["type"].as_str()?;
            (if kind == "assert" { "error" } else { kind }, format!("console: {}", words.collect::<Vec<_>>().join(" ")))
        }
        "Runtime.exceptionThrown" => ("error", format!("uncaught: {}", exception_text(&params["exceptionDetails"]))),
        _ => return None,
    };
    let serious = match level {
        "error" => true,
        "warning" => false,
        _ => return None,
    };
    Some(Complaint { serious, text: cut(&text, 2000) })
}

fn exception_text(details: &Value) -> String {
    let described = details["exception"]["description"].as_str().or_else(|| details["exception"]["value"].as_str());
    let text = described.or_else(|| details["text"].as_str()).unwrap_or("an exception without a text");
    cut(text, 4000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_told_from_chatter() {
        let entry = |level| json!({ "entry": { "level": level, "source": "rendering", "text": "bad shader" } });
        let expected = |serious| Some(Complaint { serious, text: "rendering: bad shader".into() });
        assert_eq!(complaint("Log.entryAdded", &entry("error")), expected(true));
        assert_eq!(complaint("Log.entryAdded", &entry("warning")), expected(false));
        assert_eq!(complaint("Log.entryAdded", &entry("verbose")), None);
        let call =
            json!({ "type": "error", "args": [{ "value": "a" }, { "value": 1 }, { "description": "Error: x" }] });
        let found = complaint("Runtime.consoleAPICalled", &call).unwrap();
        assert_eq!((found.serious, found.text.as_str()), (true, "console: a 1 Error: x"));
        let thrown = json!({ "exceptionDetails": { "text": "Uncaught", "exception": { "description": "Error: y" } } });
        assert_eq!(complaint("Runtime.exceptionThrown", &thrown).unwrap().text, "uncaught: Error: y");
        for (method, params) in
            [("Page.loadEventFired", json!({})), ("Log.entryAdded", json!([])), ("Runtime.consoleAPICalled", json!(1))]
        {
            assert_eq!(complaint(method, &params), None);
        }
    }

    #[test]
    fn a_browser_that_is_not_there_is_named() {
        let missing = Path::new("/nowhere/chromium");
        assert_eq!(
            find(Some(missing)).unwrap_err(),
            "there is no program /nowhere/chromium: name another with --browser"
        );
        let error = Browser::launch(missing, false, Instant::now(), &Interrupt::default()).map(|_| ());
        assert!(error.is_ok(), "the shell starts, and says that there is none");
    }
}
