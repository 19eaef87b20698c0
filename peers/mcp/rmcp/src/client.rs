//! The client: carries out plans and reports what it saw.

use std::{
    collections::{HashMap, VecDeque},
    io::{Read as _, Write as _},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use futures_util::future;
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationAction, Implementation, JsonObject, ProgressNotificationParam, ProtocolVersion,
    },
    service::{
        ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
        ServiceError,
    },
    transport::StreamableHttpClientTransport,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Notify,
    task::JoinSet,
};

/// Plans that are carried out at the same time.
const AT_ONCE: usize = 2;

/// One connection to one server.
#[derive(Deserialize)]
struct Plan {
    name: String,
    server: Vec<String>,
    env: HashMap<String, String>,
    url: Option<String>,
    era: Era,
    elicitation: bool,
    calls: Vec<Call>,
    #[serde(default)]
    together: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Era {
    Legacy,
    #[serde(rename = "2025-06-18")]
    June,
    Auto,
    Modern,
}

#[derive(Clone, Deserialize)]
struct Call {
    name: String,
    tool: String,
    arguments: JsonObject,
    answer: Option<Answer>,
    #[serde(rename = "givesUp", default)]
    gives_up: bool,
}

/// What the person at this client does with a question.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Answer {
    Throws {
        throws: String,
    },
    Never {
        #[serde(rename = "never")]
        _never: bool,
    },
    Aborts {
        #[serde(rename = "aborts")]
        _aborts: bool,
    },
    Given {
        action: String,
        content: Option<Value>,
        #[serde(rename = "afterMs", default)]
        after_ms: u64,
    },
}

/// What was seen of one call.
#[derive(Clone, Default, Serialize)]
struct Line {
    name: String,
    asked: Vec<Value>,
    withdrawn: bool,
    progress: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

/// One call that is under way, or was.
struct UnderWay {
    call: Call,
    line: Mutex<Line>,
    abort: Notify,
}

impl UnderWay {
    fn new(call: Call) -> Self {
        let line = Line { name: call.name.clone(), ..Line::default() };
        Self { call, line: line.into(), abort: Notify::new() }
    }

    /// Whether a question has the choices of this call, or is the one that its tool asks.
    fn is_about(&self, params: &Value) -> bool {
        let device = &params["requestedSchema"]["properties"]["deviceId"];
        if device.is_null() {
            return self.call.tool == "ask";
        }
        let titled = device["oneOf"].as_array().map(|all| all.iter().map(|one| one["const"].clone()));
        let choices = titled.map_or_else(|| device["enum"].clone(), Iterator::collect);
        self.call.arguments.get("offer") == Some(&choices)
    }

    fn line<T>(&self, write: impl FnOnce(&mut Line) -> T) -> T {
        write(&mut self.line.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Clone)]
struct Client {
    era: Era,
    elicitation: bool,
    begun: Arc<Mutex<Vec<Arc<UnderWay>>>>,
}

impl Client {
    fn begin(&self, call: Call) -> Arc<UnderWay> {
        let call = Arc::new(UnderWay::new(call));
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
        call
    }

    /// The last call that fits, or the last one of all.
    fn last(&self, fits: impl Fn(&UnderWay) -> bool) -> Option<Arc<UnderWay>> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.iter().rev().find(|call| fits(call)).or(begun.last()).cloned()
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = if self.elicitation {
            ClientCapabilities::builder().enable_elicitation().build()
        } else {
            ClientCapabilities::default()
        };
        let config = ClientConfig::new(capabilities, Implementation::new("rmcp", "1"));
        match self.era {
            Era::June => config.with_protocol_version(ProtocolVersion::V_2025_06_18),
            Era::Legacy | Era::Auto | Era::Modern => config,
        }
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = json!(params);
        let now = self.last(|call| call.is_about(&params));
        let now = now.ok_or_else(|| ErrorData::internal_error("no call", None))?;
        now.line(|line| line.asked.push(params));
        match &now.call.answer {
            None => Ok(ElicitResult::new(ElicitationAction::Decline)),
            Some(Answer::Throws { throws }) => Err(ErrorData::internal_error(throws.clone(), None)),
            Some(Answer::Given { action, content, after_ms }) => {
                tokio::time::sleep(Duration::from_millis(*after_ms)).await;
                serde_json::from_value(json!({"action": action, "content": content}))
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))
            }
            Some(Answer::Never { .. } | Answer::Aborts { .. }) => {
                if matches!(now.call.answer, Some(Answer::Aborts { .. })) {
                    now.abort.notify_one();
                }
                context.ct.cancelled().await;
                now.line(|line| line.withdrawn = true);
                Err(ErrorData::internal_error("withdrawn", None))
            }
        }
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        // The tools that report progress.
        if let Some(now) = self.last(|begun| ["count", "wait"].contains(&begun.call.tool.as_str())) {
            now.line(|line| line.progress += 1);
            if now.call.gives_up {
                now.abort.notify_one();
            }
        }
    }
}

/// Carries out the plans on stdin, a few at a time; a report a line on stdout.
pub(crate) async fn carry_out() -> anyhow::Result<()> {
    let mut plans = String::new();
    std::io::stdin().read_to_string(&mut plans)?;
    let plans: VecDeque<Plan> = serde_json::from_str(&plans).context("the plans on stdin")?;
    let plans = Arc::new(Mutex::new(plans));
    let workers: JoinSet<anyhow::Result<()>> = (0..AT_ONCE).map(|_| work(plans.clone())).collect();
    workers.join_all().await.into_iter().collect()
}

async fn work(plans: Arc<Mutex<VecDeque<Plan>>>) -> anyhow::Result<()> {
    let next = || plans.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(plan) = next() {
        let name = plan.name.clone();
        let mut report = match report(plan).await {
            Ok(report) => report,
            Err(error) => {
                json!({"refused": {"code": null, "message": format!("{error:#}"), "data": null}})
            }
        };
        report["name"] = name.into();
        writeln!(std::io::stdout(), "{report}")?;
    }
    Ok(())
}

async fn report(plan: Plan) -> anyhow::Result<Value> {
    let client = Client { era: plan.era, elicitation: plan.elicitation, begun: Arc::default() };
    let (service, server) = if let Some(url) = &plan.url {
        let transport = StreamableHttpClientTransport::from_uri(url.as_str());
        (client.clone().serve_with_lifecycle(transport, lifecycle(plan.era)).await?, None)
    } else {
        let (pipes, server) = start(&plan)?;
        (client.clone().serve_with_lifecycle(pipes, lifecycle(plan.era)).await?, Some(server))
    };
    let version = service.peer_info().map(|info| info.protocol_version.to_string());
    let tools = service.list_all_tools().await?;
    if plan.together {
        future::join_all(plan.calls.into_iter().map(|call| act(&client, &service, call))).await;
    } else {
        for call in plan.calls {
            act(&client, &service, call).await;
        }
    }
    let close_ms = close(service, server).await?;
    let begun = client.begun.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<Line> = begun.iter().map(|call| call.line(|line| line.clone())).collect();
    Ok(json!({"protocolVersion": version, "tools": tools, "calls": lines, "closeMs": close_ms}))
}

/// Starts a server that speaks over stdio.
fn start(plan: &Plan) -> anyhow::Result<((ChildStdout, ChildStdin), Child)> {
    let [program, arguments @ ..] = plan.server.as_slice() else { bail!("a plan without a server") };
    let mut server = Command::new(program)
        .args(arguments)
        .envs(&plan.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let pipes = server.stdout.take().zip(server.stdin.take()).context("no pipes")?;
    Ok((pipes, server))
}

/// Ends the connection as a client does: ends the session, or closes the server's stdin and waits until it is gone.
/// Gives the milliseconds that this took.
#[expect(clippy::disallowed_methods, reason = "a peer of the tests shares no code with what it tests")]
async fn close(service: RunningService<RoleClient, Client>, server: Option<Child>) -> anyhow::Result<u128> {
    let before = Instant::now();
    service.cancel().await?;
    if let Some(mut server) = server {
        server.wait().await?;
    }
    Ok(before.elapsed().as_millis())
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match era {
        Era::Legacy | Era::June => ClientLifecycleMode::Initialize,
        Era::Auto => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        Era::Modern => ClientLifecycleMode::Discover { preferred_versions },
    }
}

async fn act(client: &Client, service: &RunningService<RoleClient, Client>, call: Call) {
    let params = CallToolRequestParams::new(call.tool.clone()).with_arguments(call.arguments.clone());
    let now = client.begin(call);
    let ended = tokio::select! {
        ended = service.call_tool(params) => ended,
        // Giving the future up is how this SDK cancels a call.
        () = now.abort.notified() => Err(ServiceError::Cancelled { reason: Some("aborted".to_owned()) }),
    };
    now.line(|line| match ended {
        Ok(result) => line.result = Some(json!(result)),
        Err(ServiceError::McpError(error)) => line.error = Some(json!(error)),
        Err(error) => line.error = Some(json!({"code": null, "message": error.to_string()})),
    });
}
