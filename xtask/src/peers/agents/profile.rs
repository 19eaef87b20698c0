//! The agents: where they come from, how they are started, and how their models call their tools.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::peers::{install::Package, model::Call};

/// An agent in one version.
pub(super) struct Agent {
    /// Its name in the table and the name of its file of expected rows, which its version completes.
    pub(super) name: &'static str,
    pub(super) package: Package,
    /// What `--agent-id` says.
    pub(super) id: &'static str,
    /// Writes its configuration, and says how it is started.
    pub(super) launch: fn(&Site) -> anyhow::Result<Launch>,
    /// Whether it ever sends a form; one that does not gets the scenarios that say so.
    pub(super) sends_forms: bool,
    /// How its model asks these questions at once.
    pub(super) ask: fn(&[Question]) -> Call,
    /// How its model calls the tool `deploy` of the MCP server `deploytool`.
    pub(super) deploy: fn() -> Call,
    /// How its model runs a command.
    pub(super) shell: fn(&str) -> Call,
}

impl Agent {
    pub(super) fn version(&self) -> &'static str {
        let (Package::Npm(_, version) | Package::PyPi(_, version, _)) = self.package;
        version
    }
}

/// Where an agent runs.
pub(super) struct Site<'a> {
    /// Where its package is.
    pub(super) package: &'a Path,
    /// The folder of the program `node`.
    pub(super) node: &'a Path,
    /// Its home.
    pub(super) home: &'a Path,
    /// Its model's address.
    pub(super) model: &'a str,
}

/// How an agent is started.
pub(super) struct Launch {
    pub(super) command: Vec<PathBuf>,
    pub(super) variables: Vec<(&'static str, String)>,
}

/// A question that a model asks.
pub(super) struct Question {
    pub(super) header: &'static str,
    pub(super) text: &'static str,
    pub(super) takes_many: bool,
    pub(super) choices: &'static [&'static str],
}

/// Every agent, oldest first.
pub(super) const AGENTS: &[Agent] = &[
    claude("0.65.0"),
    claude("0.101.0"),
    Agent {
        name: "codex-acp",
        package: Package::Npm("@agentclientprotocol/codex-acp", "2.6.0"),
        id: "codex-acp",
        launch: codex,
        sends_forms: true,
        ask: |questions| Call {
            tool: "request_user_input".to_owned(),
            arguments: json!({"questions": questions.iter().enumerate().map(|(index, question)| json!({
                "id": format!("choice_{index}"), "header": question.header, "question": question.text,
                "options": described(question),
            })).collect::<Vec<_>>()}),
        },
        deploy: || without_arguments("mcp__deploytool:deploy"),
        shell: |command| Call {
            tool: "exec_command".to_owned(),
            arguments: json!({
                "cmd": command, "sandbox_permissions": "require_escalated", "justification": "It makes a file.",
            }),
        },
    },
    Agent {
        name: "mistral-vibe",
        package: Package::PyPi("mistral-vibe", "3.0.3", 12),
        id: "mistral-vibe",
        launch: vibe,
        sends_forms: true,
        ask: |questions| Call {
            tool: "ask_user_question".to_owned(),
            arguments: json!({"questions": questions.iter().map(|question| json!({
                "header": question.header, "question": question.text, "multiSelect": question.takes_many,
                "options": described(question),
            })).collect::<Vec<_>>()}),
        },
        // Tools of MCP servers are called from a program.
        deploy: || Call {
            tool: "run_typescript".to_owned(),
            arguments: json!({"code": "async function main() { return await tools.mcp_deploytool.deploy({}); }"}),
        },
        shell: |command| Call { tool: "bash".to_owned(), arguments: json!({"command": command}) },
    },
    Agent {
        name: "opencode",
        package: Package::Npm("opencode-ai", "1.18.33"),
        id: "opencode",
        launch: opencode,
        sends_forms: false,
        ask: |questions| Call {
            tool: "question".to_owned(),
            arguments: json!({"questions": questions.iter().map(|question| json!({
                "header": question.header, "question": question.text, "multiple": question.takes_many,
                "options": described(question),
            })).collect::<Vec<_>>()}),
        },
        deploy: || without_arguments("deploytool_deploy"),
        shell: |command| Call {
            tool: "bash".to_owned(),
            arguments: json!({"command": command, "description": "Makes a file"}),
        },
    },
];

fn without_arguments(tool: &str) -> Call {
    Call { tool: tool.to_owned(), arguments: json!({}) }
}

/// Choices with a description each, as every one of them wants.
fn described(question: &Question) -> Vec<Value> {
    question
        .choices
        .iter()
        .map(|choice| json!({"label": choice, "description": format!("Takes {choice}.")}))
        .collect()
}

const fn claude(version: &'static str) -> Agent {
    Agent {
        name: "claude-agent-acp",
        package: Package::Npm("@agentclientprotocol/claude-agent-acp", version),
        id: "claude-acp",
        launch: launch_claude,
        sends_forms: true,
        ask: |questions| Call {
            tool: "AskUserQuestion".to_owned(),
            arguments: json!({"questions": questions.iter().map(|question| json!({
                "header": question.header, "question": question.text, "multiSelect": question.takes_many,
                "options": described(question),
            })).collect::<Vec<_>>()}),
        },
        deploy: || without_arguments("mcp__deploytool__deploy"),
        shell: |command| Call {
            tool: "Bash".to_owned(),
            arguments: json!({"command": command, "description": "Makes a file"}),
        },
    }
}

fn launch_claude(site: &Site) -> anyhow::Result<Launch> {
    let home = site.home.join(".claude");
    std::fs::create_dir_all(&home)?;
    // Newer ones decide about permissions themselves unless told to ask, and show tools of MCP servers on request.
    std::fs::write(
        home.join("settings.json"),
        json!({"permissions": {"defaultMode": "default"}}).to_string(),
    )?;
    let script = site.package.join("node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js");
    Ok(Launch {
        command: vec![site.node.join("node"), script],
        variables: vec![
            ("ANTHROPIC_BASE_URL", site.model.to_owned()),
            ("ANTHROPIC_API_KEY", "none".to_owned()),
            ("CLAUDE_CONFIG_DIR", path(&home)),
            ("ENABLE_TOOL_SEARCH", "false".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ],
    })
}

fn codex(site: &Site) -> anyhow::Result<Launch> {
    let home = site.home.join(".codex");
    std::fs::create_dir_all(&home)?;
    // Outside its plan mode it asks with this feature alone.
    let config = format!(
        "model = \"standin\"\n\
         model_provider = \"standin\"\n\
         check_for_update_on_startup = false\n\
         [features]\n\
         default_mode_request_user_input = true\n\
         [analytics]\n\
         enabled = false\n\
         [model_providers.standin]\n\
         name = \"standin\"\n\
         base_url = \"{}/v1\"\n\
         wire_api = \"responses\"\n\
         env_key = \"OPENAI_API_KEY\"\n\
         request_max_retries = 0\n\
         stream_max_retries = 0\n",
        site.model
    );
    std::fs::write(home.join("config.toml"), config)?;
    let script = site.package.join("node_modules/@agentclientprotocol/codex-acp/dist/index.js");
    Ok(Launch {
        command: vec![site.node.join("node"), script],
        variables: vec![
            ("CODEX_HOME", path(&home)),
            ("OPENAI_API_KEY", "none".to_owned()),
            ("MODEL_PROVIDER", "standin".to_owned()),
            ("NO_BROWSER", "1".to_owned()),
            // Otherwise a model decides about permissions.
            ("INITIAL_AGENT_MODE", "read-only".to_owned()),
        ],
    })
}

fn vibe(site: &Site) -> anyhow::Result<Launch> {
    let home = site.home.join(".vibe");
    std::fs::create_dir_all(&home)?;
    let config = format!(
        "active_model = \"standin\"\n\
         enable_telemetry = false\n\
         enable_update_checks = false\n\
         enable_auto_update = false\n\
         [[providers]]\n\
         name = \"standin\"\n\
         api_base = \"{}/v1\"\n\
         api_key_env_var = \"STANDIN_KEY\"\n\
         api_style = \"openai\"\n\
         backend = \"generic\"\n\
         [[models]]\n\
         name = \"standin\"\n\
         provider = \"standin\"\n\
         alias = \"standin\"\n",
        site.model
    );
    std::fs::write(home.join("config.toml"), config)?;
    Ok(Launch {
        command: vec![site.package.join("bin/vibe-acp")],
        variables: vec![("VIBE_HOME", path(&home)), ("STANDIN_KEY", "none".to_owned())],
    })
}

fn opencode(site: &Site) -> anyhow::Result<Launch> {
    let config = site.home.join(".config/opencode");
    std::fs::create_dir_all(&config)?;
    let options = json!({"baseURL": format!("{}/v1", site.model), "apiKey": "none"});
    let model = json!({"name": "m1", "tool_call": true, "limit": {"context": 100_000, "output": 4000}});
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "standin", "options": options, "models": {"m1": model},
    });
    let settings = json!({
        "autoupdate": false, "share": "disabled", "model": "standin/m1", "small_model": "standin/m1",
        "provider": {"standin": provider}, "permission": {"bash": "ask"},
    });
    std::fs::write(config.join("opencode.json"), settings.to_string())?;
    let platform = if cfg!(target_arch = "aarch64") { "opencode-linux-arm64" } else { "opencode-linux-x64" };
    Ok(Launch {
        command: vec![site.package.join("node_modules").join(platform).join("bin/opencode"), "acp".into()],
        variables: vec![
            ("XDG_CONFIG_HOME", path(&site.home.join(".config"))),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
            ("OPENCODE_DISABLE_SHARE", "1".to_owned()),
        ],
    })
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
