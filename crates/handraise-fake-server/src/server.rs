//! The conversation: frames in, each request answered, in either era.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, BufReader, Read, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, Scope},
};

use serde_json::{Value, json, value::RawValue};

use crate::{
    args::{Eras, Options},
    devices::Devices,
    subscriptions::Subscriptions,
    tools,
    wire::Wire,
    witness::Witness,
};

/// The versions of the legacy era that are spoken.
const LEGACY: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version of the modern era.
const MODERN: &str = "2026-07-28";
const LISTEN: &str = "subscriptions/listen";
const PROTOCOL_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// What every call needs.
pub(crate) struct Server {
    pub(crate) options: Options,
    pub(crate) world: Arc<World>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) calls: Witness,
    /// What the client declared in `initialize`.
    declared: Mutex<Value>,
    /// Calls that run, by id: whether they were cancelled.
    running: Mutex<BTreeMap<String, Arc<AtomicBool>>>,
    waiting: Mutex<BTreeMap<String, Sender<Value>>>,
    next_id: AtomicU64,
}

/// What conversations with one server share.
pub(crate) struct World {
    pub(crate) devices: Devices,
    pub(crate) subscriptions: Subscriptions,
}

impl World {
    pub(crate) fn new(options: &Options) -> Arc<Self> {
        let devices = Devices::new(options.devices.clone());
        Arc::new(Self { devices, subscriptions: Subscriptions::default() })
    }
}

/// One tool call.
pub(crate) struct Call {
    /// The request's id as it was written.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) progress_token: Option<Value>,
    pub(crate) is_modern: bool,
    /// `inputResponses` and `requestState` of a retry.
    pub(crate) answers: Option<Value>,
    pub(crate) state: Option<String>,
    pub(crate) is_task: bool,
    cancelled: Arc<AtomicBool>,
}

impl Call {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// A frame's members, each as it was written.
type Frame = BTreeMap<String, Box<RawValue>>;

pub(crate) fn run(
    options: &Options,
    world: &Arc<World>,
    input: impl Read,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let server = Server {
        options: options.clone(),
        world: Arc::clone(world),
        wire: Arc::new(Wire::new(output, options)),
        calls: Witness::open(options.calls.as_deref())?,
        declared: Mutex::new(Value::Null),
        running: Mutex::default(),
        waiting: Mutex::default(),
        next_id: AtomicU64::new(0),
    };
    let record = Witness::open(options.record.as_deref())?;
    thread::scope(|scope| {
        let mut input = BufReader::with_capacity(256 * 1024, input);
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            record.bytes(&line)?;
            if let Ok(frame) = serde_json::from_slice::<Frame>(&line) {
                server.take(scope, &frame)?;
            } else if !line.trim_ascii().is_empty() {
                server.wire.fail("null", -32700, "no JSON object")?;
            }
            line.clear();
        }
        // Nobody will answer any more.
        lock(&server.waiting).clear();
        Ok(())
    })
}

impl Server {
    fn take<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, frame: &Frame) -> io::Result<()> {
        let value = |name: &str| {
            frame.get(name).map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap_or_default())
        };
        let id = frame.get("id").map(|id| id.get().to_owned());
        let method = value("method");
        match (method.as_str(), id) {
            (Some("tools/call"), Some(id)) => self.call(scope, id, &value("params")),
            (Some(method), Some(id)) => self.request(&id, method, &value("params")),
            (Some("notifications/cancelled"), None) => {
                let id = value("params")["requestId"].to_string();
                if self.world.subscriptions.cancel(&self.wire, &id) {
                    return self.calls.cancelled(LISTEN);
                }
                if let Some(cancelled) = lock(&self.running).get(&id) {
                    cancelled.store(true, Ordering::Relaxed);
                }
                Ok(())
            }
            (None, Some(id)) => {
                if let Some(waiting) = lock(&self.waiting).remove(&id) {
                    let answer = if frame.contains_key("error") {
                        json!({"error": value("error")})
                    } else {
                        value("result")
                    };
                    let _ = waiting.send(answer);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn request(&self, id: &str, method: &str, params: &Value) -> io::Result<()> {
        let is_modern = params["_meta"][PROTOCOL_KEY].as_str().is_some();
        let has_legacy = self.options.eras != Eras::Modern;
        let has_modern = self.options.eras != Eras::Legacy;
        let info = json!({"name": "handraise-fake-server", "version": env!("CARGO_PKG_VERSION")});
        let result = match method {
            "initialize" if has_legacy => {
                *lock(&self.declared) = params["capabilities"]["elicitation"].clone();
                let asked = params["protocolVersion"].as_str().unwrap_or_default();
                let version = if LEGACY.contains(&asked) { asked } else { "2025-11-25" };
                json!({
                    "protocolVersion": version, "capabilities": {"tools": {"listChanged": true}, "logging": {}},
                    "serverInfo": info, "instructions": tools::INSTRUCTIONS,
                })
            }
            "server/discover" if has_modern => json!({
                "resultType": "complete", "supportedVersions": [MODERN, "2025-11-25"],
                "capabilities": {"tools": {}}, "instructions": tools::INSTRUCTIONS, "ttlMs": 3_600_000,
                "cacheScope": "public", "_meta": {"io.modelcontextprotocol/serverInfo": info},
            }),
            "tools/list" if is_modern && has_modern => json!({
                "resultType": "complete", "tools": tools::list(), "ttlMs": 3_600_000, "cacheScope": "public",
            }),
            "tools/list" => json!({"tools": tools::list()}),
            LISTEN if is_modern && has_modern => {
                self.calls.began(LISTEN, &params["notifications"])?;
                return self.world.subscriptions.begin(&self.wire, id, &params["notifications"]);
            }
            "ping" | "logging/setLevel" => json!({}),
            _ => return self.wire.fail(id, -32601, &format!("no method is called {method}")),
        };
        self.wire.respond(id, &result.to_string())
    }

    fn call<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        id: String,
        params: &Value,
    ) -> io::Result<()> {
        let Some(name) = params["name"].as_str() else {
            return self.wire.fail(&id, -32602, "a tool call names a tool");
        };
        let meta = &params["_meta"];
        let call = Call {
            id,
            name: name.to_owned(),
            arguments: params["arguments"].clone(),
            progress_token: meta.get("progressToken").cloned(),
            is_modern: self.options.eras != Eras::Legacy && meta[PROTOCOL_KEY].as_str().is_some(),
            answers: params.get("inputResponses").cloned(),
            state: params["requestState"].as_str().map(str::to_owned),
            is_task: params.get("task").is_some(),
            cancelled: Arc::default(),
        };
        if tools::takes_time(&call) {
            lock(&self.running).insert(call.id.clone(), Arc::clone(&call.cancelled));
            scope.spawn(move || {
                let outcome = tools::run(self, &call);
                let mut running = lock(&self.running);
                // Another call may have this id by now.
                if running.get(&call.id).is_some_and(|of_id| Arc::ptr_eq(of_id, &call.cancelled)) {
                    running.remove(&call.id);
                }
                outcome
            });
            return Ok(());
        }
        tools::run(self, &call)
    }

    /// What the client said of elicitation when it introduced itself.
    pub(crate) fn declared(&self) -> Value {
        lock(&self.declared).clone()
    }

    /// Sends a request of our own; the answer comes over the channel, or never.
    pub(crate) fn ask(
        &self,
        id: Option<&Value>,
        method: &str,
        params: &Value,
    ) -> io::Result<Receiver<Value>> {
        let id =
            id.map_or_else(|| self.next_id.fetch_add(1, Ordering::Relaxed).to_string(), ToString::to_string);
        let (sender, receiver) = channel();
        lock(&self.waiting).insert(id.clone(), sender);
        self.wire.request(&id, method, params)?;
        Ok(receiver)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
