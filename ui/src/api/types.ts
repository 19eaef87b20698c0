// The shapes of the inbox's HTTP API that the page reads and sends.

export type Source = "elicitation" | "permission" | "refusal" | "confirm" | "tool" | "script";
export type Mode = "form" | "url";
export type Kind = "single" | "multi" | "text" | "boolean" | "number" | "integer";
export type HolderKind = "agent" | "gateway" | "ask" | "tool" | "hook";
export type AskState = "open" | "sent" | "settled";
export type OnDeadline = "decline" | "refuse";
export type Provenance = "human" | "client" | "not_shown" | "system";
export type Outcome =
  | "accept"
  | "decline"
  | "cancel"
  | "timeout"
  | "invalid"
  | "error"
  | "not_offered"
  | "disabled"
  | "remembered"
  | "asked"
  | "withdrawn";

export interface Choice {
  value: string;
  label: string;
  description: string | null;
  preview: string | null;
}

export interface Constraints {
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
}

export interface Question {
  id: string;
  kind: Kind;
  title: string | null;
  prompt: string;
  required: boolean;
  default: unknown;
  allows_text: boolean;
  companion: "replaces" | "adds" | null;
  secret: boolean;
  choices: Choice[];
  constraints: Constraints;
}

export interface Confirm {
  tool: string;
  account: string | null;
  target: string | null;
  action: string | null;
  arguments: string;
  preview: string | null;
}

export interface Origin {
  holder: HolderKind;
  holder_token: string;
  client: { name: string; version: string | null } | null;
  server: string | null;
}

export interface Answer {
  question_id: string;
  selected_options: string[];
  custom_text: string;
}

export interface Settlement {
  outcome: Outcome;
  provenance: Provenance;
  rail: "form" | "url" | "inbox" | "token" | "refuse";
  wire: "accept" | "decline" | "cancel" | null;
  by: string | null;
  at: string;
  reason: string | null;
  answers: Answer[];
  submission_id: string | null;
}

export interface Ask {
  id: string;
  digest: string;
  state: AskState;
  source: Source;
  mode: Mode;
  session_id: string | null;
  tool_call_id: string | null;
  message: string;
  url: string | null;
  confirm: Confirm | null;
  on_deadline: OnDeadline | null;
  allows_text_with_selection: boolean;
  allows_partial: boolean;
  questions: Question[];
  origin: Origin;
  opened_at: string;
  deadline: string | null;
  parked_until: string | null;
  holder_connected: boolean;
  settlement: Settlement | null;
  replayed?: boolean;
}

export interface AskList {
  asks: Ask[];
  next_cursor: string | null;
}

export interface Session {
  id: string;
  agent: string;
  title: string | null;
  cwd: string | null;
  state: "idle" | "running" | "ended";
  stop_reason: string | null;
  pending_action: "clarification" | null;
  waiting: number;
  holder_connected: boolean;
  holder_token: string;
  started_at: string;
  updated_at: string;
}

export type MessageKind =
  | "agent_text"
  | "thought"
  | "user_text"
  | "tool_call"
  | "plan"
  | "clarification_request"
  | "turn_ended"
  | "notice";

export interface Message {
  seq: number;
  session_id: string;
  at: string;
  type: MessageKind;
  author: "agent" | "operator" | "system";
  text: string;
  continues?: boolean;
  requests_input: boolean;
  metadata: Record<string, unknown>;
}

export interface MessageList {
  messages: Message[];
  next_after: number | null;
}

export interface Snapshot {
  asks: Ask[];
  open: number;
  next_cursor: string | null;
  sessions: Session[];
}

export type Scope = "viewer" | "operator" | "admin" | "holder";

export interface Login {
  token: string;
  scope: Scope;
  name: string;
}

export interface Flag {
  name: string;
  value: boolean;
  source: "default" | "file" | "environment" | "setting";
}

export interface Token {
  id: string;
  name: string;
  scope: Scope;
  owner: string | null;
  created_at: string;
  expires_at: string | null;
  page_session: boolean;
}

export interface ErrorDetail {
  question_id: string;
  rule: string;
  message: string;
}

export interface ErrorBody {
  error: { code: string; message: string; details?: ErrorDetail[] };
  settlement?: Settlement | null;
  recorded?: boolean;
}
