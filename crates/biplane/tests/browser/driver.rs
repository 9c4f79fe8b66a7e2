//! A Chromium that a test drives over WebDriver, by what readers and their tools see of a page: the
//! browser's accessibility tree.
//!
//! The protocol is plain JSON over HTTP and the tests need a dozen of its commands, so they speak it
//! themselves. Nothing here runs a script in the page, so that pages can be read with scripts off.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

/// How long a condition may take to become true. A machine that is busy is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the driver, and ends it and its browser with the input of the shell: when the test drops
/// it, and when the test is killed.
const SCRIPT: &str = r#"
export HOME="$2" XDG_CONFIG_HOME="$2" XDG_CACHE_HOME="$2"
"$1" --port=0 2>"$2/driver.log" &
driver=$!
cat >/dev/null
exec 2>/dev/null
kill -KILL $driver $(cat "$2/browser.pid")
wait $driver
# The processes of the browser end soon after it.
rm -rf "$2" || { sleep 1; rm -rf "$2"; }
"#;

/// Looks for a program as a shell does.
fn program(names: &[&str]) -> PathBuf {
    #[allow(clippy::disallowed_methods)] // a test looks for a program as a shell does
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = names
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.exists()));
    found.unwrap_or_else(|| {
        panic!(
            "{} is not installed: install the packages `chromium` and `chromium-driver` of your \
             distribution, or run `cargo xtask test` as root on Debian, which does it",
            names[0]
        )
    })
}

/// A browser with one page.
pub(crate) struct Browser {
    port: u16,
    session: String,
    shell: Child,
    /// While it is open, the browser runs.
    alive: Option<ChildStdin>,
    _output: BufReader<ChildStdout>,
}

/// A node of the accessibility tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) is_focused: bool,
    pub(crate) is_focusable: bool,
    element: Option<i64>,
}

/// What readers choose and have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) scheme: &'static str,
    pub(crate) media: &'static str,
}

impl View {
    pub(crate) const WIDE: Self = Self { width: 1280, scheme: "light", media: "screen" };
}

impl Browser {
    /// Starts a browser, with scripts on or off.
    pub(crate) fn start(scripts: bool) -> Self {
        let chromium = program(&["chromium", "chromium-browser", "google-chrome"]);
        let driver = program(&["chromedriver"]);
        // The shell removes it.
        let folder = tempfile::Builder::new().prefix("browser").tempdir().unwrap().keep();
        let wrapper = folder.join("chromium");
        let words = format!(
            "#!/bin/sh\necho $$ >'{0}/browser.pid'\nexec '{1}' \"$@\"\n",
            folder.display(),
            chromium.display()
        );
        std::fs::write(&wrapper, words).unwrap();
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(driver).arg(&folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(&folder);
        // An interrupt of the tests is not for the browser.
        let mut shell = command.process_group(0).spawn().unwrap();
        let alive = shell.stdin.take();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        let mut line = String::new();
        let port = loop {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the driver has ended");
            let port = line.trim_end().rsplit_once("successfully on port ").map(|(_, port)| port);
            if let Some(port) = port.and_then(|port| port.trim_end_matches('.').parse().ok()) {
                break port;
            }
        };
        let session = String::new();
        let mut browser = Self { port, session, shell, alive, _output: output };
        browser.session = browser.begin(&folder, &wrapper, scripts);
        browser.view(View::WIDE);
        browser
    }

    fn begin(&self, folder: &Path, binary: &Path, scripts: bool) -> String {
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let arguments = [
            "--headless=new",
            // Containers and CI machines run as root and have little shared memory.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
            "--force-device-scale-factor=1",
            // A page of 360 pixels has all of them.
            "--hide-scrollbars",
            "--lang=en-US",
            &profile,
        ];
        let settings = if scripts { 1 } else { 2 };
        let options = json!({
            "binary": binary,
            "args": arguments,
            "prefs": {"profile.managed_default_content_settings.javascript": settings},
        });
        let body = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
        }}});
        let answer = self.request("POST", "/session", Some(&body)).unwrap();
        answer["sessionId"].as_str().unwrap().to_owned()
    }

    /// One command of the protocol: its value, or what went wrong.
    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|e| e.to_string())?;
        stream.set_read_timeout(Some(PATIENCE * 2)).map_err(|e| e.to_string())?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.port,
            body.len()
        );
        let sent = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat());
        sent.map_err(|error| error.to_string())?;
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            let read = reader.read_line(&mut line).map_err(|error| error.to_string())?;
            if read == 0 || line == "\r\n" {
                break;
            }
            let line = line.to_ascii_lowercase();
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().map_err(|_| line.clone())?;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).map_err(|error| error.to_string())?;
        let mut answer: Value =
            serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        let value = answer["value"].take();
        match value.get("error").and_then(Value::as_str) {
            Some(error) => {
                Err(format!("{error}: {}", value["message"].as_str().unwrap_or_default()))
            }
            None => Ok(value),
        }
    }

    fn try_command(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        self.request(method, &format!("/session/{}{path}", self.session), body)
    }

    fn command(&self, path: &str, body: &Value) -> Value {
        self.try_command("POST", path, Some(body))
            .unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    /// A command of the browser's own protocol.
    fn try_devtools(&self, name: &str, parameters: &Value) -> Result<Value, String> {
        let body = json!({"cmd": name, "params": parameters});
        self.try_command("POST", "/goog/cdp/execute", Some(&body))
    }

    fn devtools(&self, name: &str, parameters: &Value) -> Value {
        self.try_devtools(name, parameters)
            .unwrap_or_else(|error| panic!("{name} {parameters}: {error}"))
    }

    /// Sets the width of the page, the colours that the reader prefers, and screen or print.
    pub(crate) fn view(&self, view: View) {
        let metrics =
            json!({"width": view.width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let features = json!([
            {"name": "prefers-color-scheme", "value": view.scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.devtools(
            "Emulation.setEmulatedMedia",
            &json!({"media": view.media, "features": features}),
        );
    }

    pub(crate) fn go(&self, url: &str) {
        self.command("/url", &json!({"url": url}));
    }

    pub(crate) fn url(&self) -> String {
        let url = self.try_command("GET", "/url", None).unwrap();
        url.as_str().unwrap().to_owned()
    }

    /// Waits until a condition holds. Pages are being replaced meanwhile, so it may fail in between.
    pub(crate) fn until<T>(&self, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = condition() {
                return found;
            }
            assert!(Instant::now() < end, "{what} at {}:\n{}", self.url(), self.text());
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// All nodes of the accessibility tree that are not ignored, in the order of the page.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        self.try_nodes().unwrap_or_default()
    }

    fn try_nodes(&self) -> Result<Vec<Node>, String> {
        let tree = self.try_devtools("Accessibility.getFullAXTree", &json!({}))?;
        let list = tree["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let by_id: BTreeMap<&str, &Value> =
            list.iter().filter_map(|node| Some((node["nodeId"].as_str()?, node))).collect();
        let mut nodes = Vec::new();
        let roots = list.iter().filter(|node| node["parentId"].is_null());
        let mut waiting: Vec<&Value> = roots.collect();
        waiting.reverse();
        while let Some(node) = waiting.pop() {
            if node["ignored"] != json!(true) {
                nodes.push(read(node));
            }
            let children = node["childIds"].as_array().into_iter().flatten().rev();
            waiting.extend(children.filter_map(|id| by_id.get(id.as_str()?).copied()));
        }
        Ok(nodes)
    }

    /// The text of the page as tools read it.
    pub(crate) fn text(&self) -> String {
        text(&self.nodes())
    }

    /// Waits until the page says something.
    pub(crate) fn see(&self, words: &str) {
        self.until(&format!("the page does not say {words:?}"), || {
            self.text().contains(words).then_some(())
        });
    }

    /// Waits until the address has a path.
    pub(crate) fn arrive(&self, path: &str) {
        self.until(&format!("the address is not {path:?}"), || {
            let url = self.url();
            let at = url.splitn(4, '/').nth(3).unwrap_or_default();
            let at = format!("/{}", at.split(['?', '#']).next().unwrap_or_default());
            (at == path).then_some(())
        });
    }

    /// Waits for the first node of a role whose name contains some words.
    pub(crate) fn find(&self, role: &str, words: &str) -> Node {
        self.until(&format!("there is no {role} {words:?}"), || self.find_now(role, words))
    }

    pub(crate) fn find_now(&self, role: &str, words: &str) -> Option<Node> {
        self.nodes().into_iter().find(|node| node.is(role, words))
    }

    /// Clicks into the middle of a node.
    pub(crate) fn click(&self, node: &Node) {
        let element = json!({"backendNodeId": node.element});
        self.devtools("DOM.scrollIntoViewIfNeeded", &element);
        let quads = self.devtools("DOM.getContentQuads", &element);
        let quad: Vec<f64> =
            quads["quads"][0].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        let middle = |from: usize| f64::midpoint(quad[from], quad[from + 4]);
        let (x, y) = (middle(0), middle(1));
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let buttons = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.devtools("Input.dispatchMouseEvent", &buttons);
        }
    }

    /// Clicks on a link.
    pub(crate) fn follow(&self, words: &str) {
        self.click(&self.find("link", words));
    }

    /// Presses keys, one after the other.
    pub(crate) fn press(&self, keys: &str) {
        let mut actions = Vec::new();
        for key in keys.chars() {
            actions.push(json!({"type": "keyDown", "value": key.to_string()}));
            actions.push(json!({"type": "keyUp", "value": key.to_string()}));
        }
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.command("/actions", &json!({"actions": [keyboard]}));
    }

    /// What has the focus.
    pub(crate) fn focused(&self) -> Option<Node> {
        // The document has it if nothing else does.
        self.nodes().into_iter().rfind(|node| node.is_focused)
    }

    /// Presses Tab until something has the focus. Everything must be reachable so.
    pub(crate) fn tab_to(&self, role: &str, words: &str) {
        self.find(role, words);
        let mut seen = Vec::new();
        for _ in 0..400 {
            self.press(TAB);
            let Some(node) = self.focused() else { continue };
            if node.is(role, words) {
                return;
            }
            seen.push(format!("{} {}", node.role, node.name));
        }
        panic!("no Tab leads to the {role} {words:?} at {}: {seen:#?}", self.url());
    }

    /// Goes to a link by keyboard and follows it.
    pub(crate) fn tab_and_follow(&self, words: &str) {
        self.tab_to("link", words);
        self.press(ENTER);
    }

    /// The widths of the page and of its content.
    pub(crate) fn widths(&self) -> (f64, f64) {
        let metrics = self.devtools("Page.getLayoutMetrics", &json!({}));
        let width = |of: &str, field: &str| metrics[of][field].as_f64().unwrap();
        (width("cssLayoutViewport", "clientWidth"), width("cssContentSize", "width"))
    }

    /// A picture of the whole page.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let metrics = self.devtools("Page.getLayoutMetrics", &json!({}));
        let size = &metrics["cssContentSize"];
        let height = size["height"].as_f64().unwrap().min(4_000.0);
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1});
        let options = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let taken = self.devtools("Page.captureScreenshot", &options);
        let text = taken["data"].as_str().unwrap();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }

    /// Runs a script in the page. Only for what no tool tells, and with scripts on.
    pub(crate) fn script(&self, script: &str) -> Value {
        self.command("/execute/sync", &json!({"script": script, "args": []}))
    }
}

pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.alive.take());
        let _ = self.shell.wait();
    }
}

impl Node {
    pub(crate) fn is(&self, role: &str, words: &str) -> bool {
        self.role == role && self.name.contains(words)
    }
}

fn read(node: &Value) -> Node {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let has = |name: &str| {
        let properties = node["properties"].as_array().into_iter().flatten();
        properties.into_iter().any(|p| p["name"] == *name && p["value"]["value"] == json!(true))
    };
    Node {
        role: text(&node["role"]["value"]),
        name: text(&node["name"]["value"]),
        is_focused: has("focused"),
        is_focusable: has("focusable"),
        element: node["backendDOMNodeId"].as_i64(),
    }
}

/// The texts of nodes, each once, with a blank between them.
pub(crate) fn text(nodes: &[Node]) -> String {
    let texts = nodes.iter().filter(|node| node.role == "StaticText");
    let words: Vec<&str> = texts.map(|node| node.name.trim()).collect();
    words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}
