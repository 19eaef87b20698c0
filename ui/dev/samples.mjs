// Sample asks, sessions and transcripts for page work and for the pictures of every card state.
import { createHash } from "node:crypto";

const MINUTE = 60_000;

export function iso(ms) {
  return new Date(ms).toISOString();
}

export function choice(value, description = null, preview = null, label = value) {
  return { value, label, description, preview };
}

export function question(id, kind, prompt, more = {}) {
  return {
    id,
    kind,
    title: null,
    prompt,
    required: false,
    default: null,
    allows_text: kind === "text",
    companion: null,
    secret: false,
    choices: [],
    constraints: {},
    ...more,
  };
}

export function origin(more = {}) {
  return { holder: "agent", holder_token: "local", client: { name: "claude-agent-acp", version: "0.82.0" }, server: null, ...more };
}

/** An open elicitation; everything can be given. */
export function ask(id, more = {}) {
  const now = Date.now();
  const made = {
    id,
    digest: "",
    state: "open",
    source: "elicitation",
    mode: "form",
    session_id: null,
    tool_call_id: null,
    message: "Which database should it use?",
    url: null,
    confirm: null,
    on_deadline: "decline",
    allows_text_with_selection: true,
    allows_partial: true,
    questions: [question("question_0", "single", "Which database should it use?", { title: "Database", choices: [choice("Postgres"), choice("SQLite")] })],
    origin: origin(),
    opened_at: iso(now - 2 * MINUTE),
    deadline: iso(now + 4 * MINUTE + 12_500),
    parked_until: null,
    holder_connected: true,
    settlement: null,
    ...more,
  };
  made.digest = createHash("sha256").update(JSON.stringify([made.message, made.questions, made.source])).digest("hex");
  return made;
}

export function settlement(outcome, more = {}) {
  return {
    outcome,
    provenance: "human",
    rail: "inbox",
    wire: outcome === "accept" ? "accept" : "decline",
    by: "Desk one",
    at: iso(Date.now()),
    reason: null,
    answers: [],
    submission_id: null,
    ...more,
  };
}

export function storage(now = Date.now()) {
  return ask("0192-storage", {
    message: "Set up storage for the orders service",
    session_id: "s-orders",
    tool_call_id: "t-4",
    origin: origin({ server: "storage-wizard" }),
    questions: [
      question("question_0", "single", "Which database should the orders service use?", {
        title: "Datastore",
        allows_text: true,
        companion: "replaces",
        choices: [
          choice("Postgres", "Already runs for billing. One more schema.", '[database]\nurl = "postgres://orders"\nschema = "orders"\npool = 16'),
          choice("SQLite", "One file beside the service. No replica.", '[database]\nurl = "sqlite:///var/lib/orders.db"'),
          choice("DynamoDB", "Managed, pay per request. New access model.", '[database]\ntable = "orders"\nregion = "eu-west-1"'),
        ],
      }),
      question("question_1", "multi", "Where should the first migration run?", {
        title: "Environments",
        choices: [choice("dev"), choice("staging"), choice("prod", "Needs a second approval from the platform team")],
      }),
      question("question_2", "boolean", "Take a backup before the first migration?", { title: "Backup" }),
      question("question_3", "integer", "How many connections may it hold?", { title: "Pool size", default: 16, constraints: { minimum: 1, maximum: 64 } }),
      question("question_4", "text", "Anything the reviewer should know?", { title: "Notes" }),
      question("question_5", "text", "Password for the orders schema", { title: "Access", secret: true }),
    ],
    opened_at: iso(now - 2 * MINUTE),
  });
}

export function kinds(now = Date.now()) {
  return ask("0192-kinds", {
    message: "Fill in the release form",
    origin: origin({ client: { name: "fake-agent", version: "1" } }),
    deadline: iso(now + 40 * MINUTE),
    questions: [
      question("channel", "single", "Which channel?", { required: true, default: "beta", choices: [choice("stable"), choice("beta"), choice("nightly")] }),
      question("targets", "multi", "Which targets?", { choices: [choice("linux"), choice("mac"), choice("windows")], constraints: { minItems: 1, maxItems: 2 } }),
      question("sign", "boolean", "Sign the build?", { default: true }),
      question("parallel", "integer", "How many jobs at once?", { constraints: { minimum: 1, maximum: 16 } }),
      question("ratio", "number", "Share of users that get it first?", { default: 0.25 }),
      question("notes", "text", "Release notes?", {}),
      question("day", "text", "Which day?", { constraints: { format: "date" } }),
      question("at", "text", "At what time?", { constraints: { format: "date-time" } }),
      question("mail", "text", "Who is told?", { constraints: { format: "email" } }),
      question("page", "text", "Where is it announced?", { constraints: { format: "uri" } }),
      question("code", "text", "Code name?", { required: true, constraints: { minLength: 3, maxLength: 12, pattern: "^[a-z]+$" } }),
      question("apiKey", "text", "Key for the store", { secret: true }),
    ],
  });
}

export function sampleAsks(now = Date.now()) {
  return [
    ask("0192-device", {
      message: "Which device should tapOn use?",
      origin: origin({ holder: "gateway", client: { name: "Copilot CLI", version: "1.4" }, server: "automobile" }),
      source: "refusal",
      opened_at: iso(now - 12_000),
      deadline: iso(now + 48_500),
      questions: [question("deviceId", "single", "Which device should tapOn use?", { required: true, choices: [choice("emulator-5554"), choice("pixel-8")] })],
    }),
    storage(now),
    ask("0192-confirm", {
      message: "Send “Price change” to 214 recipients",
      source: "confirm",
      on_deadline: "refuse",
      allows_partial: false,
      origin: origin({ holder: "gateway", client: { name: "Claude Code", version: "2.1" }, server: "gmail" }),
      confirm: {
        tool: "gmail_send",
        account: "sales@example.com",
        target: "customers-eu (214)",
        action: "Send e-mail",
        arguments: '"draftId":"r-5521"\n"subject":"Price change from 1 January"',
        preview: '{"recipients":214}',
      },
      questions: [question("confirm", "boolean", "Send it?", { required: true })],
      opened_at: iso(now - 3_000),
      deadline: iso(now + 9 * MINUTE + 20_000),
    }),
    ask("0192-permission", {
      message: "Run terraform apply in prod?\nterraform apply -auto-approve\nin ~/src/infra",
      source: "permission",
      session_id: "s-infra",
      allows_partial: false,
      allows_text_with_selection: false,
      origin: origin({ client: { name: "codex-acp", version: "0.9" } }),
      questions: [
        question("permission", "single", "Run terraform apply in prod?\nterraform apply -auto-approve\nin ~/src/infra", {
          required: true,
          choices: [
            choice("proceed", "allow · this call", null, "Yes, proceed"),
            choice("always", "allow · every later call like it in this session", null, "Yes, and don’t ask again"),
            choice("abort", "reject · this call", null, "No, tell Codex what to do"),
          ],
        }),
      ],
      opened_at: iso(now - 4 * MINUTE),
      deadline: iso(now + 31 * MINUTE + 20_000),
    }),
    ask("0192-link", {
      message: "Open a page to link your Linear account",
      mode: "url",
      url: "https://linear.app/oauth/authorize?client_id=7f3a&scope=read,write&state=9c1e",
      origin: origin({ holder: "gateway", client: { name: "VS Code", version: "1.99" }, server: "linear-mcp" }),
      questions: [],
      opened_at: iso(now - 7 * MINUTE),
      deadline: iso(now + 38 * MINUTE + 20_000),
    }),
    kinds(now),
    ask("0192-deploy", {
      message: "Deploy 4.12.0 to eu-west?",
      source: "script",
      on_deadline: null,
      allows_partial: false,
      origin: origin({ holder: "ask", holder_token: "build-3", client: { name: "deploy.sh", version: null } }),
      questions: [question("answer", "single", "Deploy 4.12.0 to eu-west?", { required: true, choices: [choice("yes"), choice("no")] })],
      opened_at: iso(now - 65 * MINUTE),
      deadline: null,
    }),
  ];
}

export function session(id, more = {}) {
  const now = Date.now();
  return {
    id,
    agent: "claude-agent-acp",
    title: id,
    cwd: null,
    state: "idle",
    stop_reason: null,
    background: false,
    pending_action: null,
    waiting: 0,
    holder_connected: true,
    holder_token: "local",
    started_at: iso(now - 10 * MINUTE),
    updated_at: iso(now - MINUTE),
    ...more,
  };
}

export function sampleSessions(now = Date.now()) {
  return [
    session("s-orders", { title: "orders-service", cwd: "~/src/orders", state: "running", pending_action: "clarification", waiting: 1, updated_at: iso(now - 2 * MINUTE) }),
    session("s-infra", { title: "infra", agent: "codex-acp", state: "running", updated_at: iso(now - 3 * MINUTE) }),
    session("s-watch", { title: "watch", stop_reason: "end_turn", background: true, updated_at: iso(now - 9 * MINUTE) }),
    session("s-flaky", { title: "flaky-tests", stop_reason: "end_turn", updated_at: iso(now - 61 * MINUTE) }),
    session("s-bump", { title: "api-bump", agent: "codex-acp", state: "ended", stop_reason: "cancelled", updated_at: iso(now - 185 * MINUTE) }),
    session("s-notes", { title: "release-notes", agent: "mistral-vibe", state: "ended", stop_reason: "max_turn_requests", updated_at: iso(now - 305 * MINUTE) }),
  ];
}

export function sampleMessages(now = Date.now()) {
  const at = (minutes) => iso(now - minutes * MINUTE);
  const entry = (seq, type, author, text, minutes, metadata = {}, more = {}) => ({
    seq,
    session_id: "s-orders",
    at: at(minutes),
    type,
    author,
    text,
    requests_input: type === "clarification_request",
    metadata,
    ...more,
  });
  return [
    entry(1, "user_text", "operator", "Set up storage for the orders service. Keep it boring.", 6),
    entry(2, "agent_text", "agent", "I read the service and its neighbours. ", 6),
    entry(3, "agent_text", "agent", "Two things matter here:\n\n- orders are written once and **read often**;\n- billing already runs Postgres, so `sqlx` is in the tree, see [the docs](https://docs.example/sqlx).\n\n![tracker](https://evil.example/pixel.png) <b>not bold</b>", 6, {}, { continues: true }),
    entry(4, "tool_call", "agent", "Read src/orders/config.rs", 5.9, { tool_call_id: "t-1", status: "in_progress" }),
    entry(5, "tool_call", "agent", "", 5.8998, { tool_call_id: "t-1", status: "completed" }),
    entry(6, "tool_call", "agent", "Run cargo sqlx migrate info", 5, { tool_call_id: "t-2", status: "pending" }),
    entry(7, "tool_call", "agent", "Run cargo sqlx migrate info: exit 1", 4.9767, { tool_call_id: "t-2", status: "failed" }),
    entry(8, "tool_call", "agent", "Edit migrations/0007_orders.sql", 3, { tool_call_id: "t-3", status: "completed" }),
    entry(9, "tool_call", "agent", "AskUserQuestion", 2, { tool_call_id: "t-4", status: "pending" }),
    entry(10, "clarification_request", "agent", "Set up storage for the orders service", 2, { pending_id: "0192-storage", tool_call_id: "t-4" }),
  ];
}
