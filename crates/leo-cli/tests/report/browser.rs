//! Chromium without a window, spoken to through two pipes in its DevTools protocol: JSON messages, each with a zero
//! byte after it. That takes no driver and no other program than Debian's `chromium` itself.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::support::Anything;

/// A browser with one page.
pub struct Browser {
    process: Child,
    commands: File,
    answers: BufReader<File>,
    session: String,
    sent: u64,
    /// What the page complained about, and what it asked the network for.
    pub complaints: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts one, if there is one.
    pub fn start() -> Anything<Option<Self>> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let is_there =
            |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
        let Some(program) = names.into_iter().find(is_there) else {
            eprintln!("skipped: there is no Chromium to look at pages with; Debian's package is called chromium");
            return Ok(None);
        };
        let folder = tempfile::tempdir()?;
        let [commands, answers, profile] = ["commands", "answers", "profile"].map(|name| folder.path().join(name));
        assert!(Command::new("mkfifo").args([&commands, &answers]).status()?.success());
        // The protocol wants descriptors 3 and 4, which a shell can give. A browser that hangs must not hang the tests.
        let script = "exec timeout 300 \"$0\" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
                      --no-first-run --disable-dev-shm-usage \
                      --user-data-dir=\"$3\" --remote-debugging-pipe about:blank 3<\"$1\" 4>\"$2\"";
        let process = Command::new("sh")
            .args(["-c", script, program])
            .args([&commands, &answers, &profile])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let commands = File::options().write(true).open(commands)?;
        let answers = BufReader::new(File::open(answers)?);
        let mut browser = Self {
            process,
            commands,
            answers,
            session: String::new(),
            sent: 0,
            complaints: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attached =
            browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}))?;
        browser.session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(Some(browser))
    }

    /// Calls a method, and waits for its answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Anything<Value> {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.commands.write_all(message.to_string().as_bytes())?;
        self.commands.write_all(&[0])?;
        loop {
            let answer = self.next()?;
            if answer["id"] == json!(self.sent) {
                return match answer.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(answer["result"].clone()),
                };
            }
        }
    }

    /// The next message, also one that nobody asked for.
    fn next(&mut self) -> Anything<Value> {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes)?;
        bytes.pop();
        let message: Value = serde_json::from_slice(&bytes)?;
        let asked = &message["params"]["request"]["url"];
        match message["method"].as_str() {
            Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => {
                self.complaints.push(message["params"].to_string());
            }
            Some("Network.requestWillBeSent") if !asked.as_str().is_some_and(|url| url.starts_with("file:")) => {
                self.complaints.push(format!("asked for {asked}"));
            }
            _ => {}
        }
        Ok(message)
    }

    /// Opens a file in a window of this size.
    pub fn open(&mut self, path: &Path, width: u32, is_dark: bool) -> Anything {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size)?;
        let scheme = json!({"name": "prefers-color-scheme", "value": if is_dark { "dark" } else { "light" }});
        self.call("Emulation.setEmulatedMedia", json!({"features": [scheme]}))?;
        self.call("Page.navigate", json!({"url": format!("file://{}", path.display())}))?;
        while self.next()?["method"] != "Page.loadEventFired" {}
        Ok(())
    }

    /// What an expression gives on the page.
    pub fn evaluate(&mut self, expression: &str) -> Anything<Value> {
        let answer = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}))?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{expression}: {details}").into()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Moves the pointer into the middle of the first thing that a selector finds.
    pub fn hover(&mut self, selector: &str) -> Anything {
        let middle = format!(
            "(() => {{ const thing = document.querySelector({selector:?}); thing.scrollIntoView({{block: 'center'}});
             const box = thing.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        let middle = self.evaluate(&middle)?;
        // Scrolling takes a moment, and hides what is shown.
        self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")?;
        std::thread::sleep(std::time::Duration::from_millis(150));
        let position = json!({"type": "mouseMoved", "x": middle[0], "y": middle[1]});
        self.call("Input.dispatchMouseEvent", position)?;
        Ok(())
    }

    /// Saves a picture of the whole page.
    pub fn photograph(&mut self, path: &Path) -> Anything {
        let whole = json!({"format": "png", "captureBeyondViewport": true});
        let picture = self.call("Page.captureScreenshot", whole)?;
        let bytes = BASE64_STANDARD.decode(picture["data"].as_str().unwrap_or_default())?;
        Ok(std::fs::write(path, bytes)?)
    }

    /// Saves the page as it would be printed.
    pub fn print(&mut self, path: &Path) -> Anything {
        let printed = self.call("Page.printToPDF", json!({"printBackground": true}))?;
        let bytes = BASE64_STANDARD.decode(printed["data"].as_str().unwrap_or_default())?;
        Ok(std::fs::write(path, bytes)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends, and all its processes with it; if it does not answer, it ends when the pipes are closed.
        self.session.clear();
        drop(self.call("Browser.close", json!({})));
        drop(self.process.wait());
    }
}
