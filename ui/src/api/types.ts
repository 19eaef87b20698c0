// The shapes of the inbox's HTTP API that the page reads and sends, under the page's own names where they differ.
import type { ErrorResponse, LoginResponse, NotFoundResponse } from "../api.generated.ts";

export type {
  Agent,
  Answer,
  Ask,
  AskList,
  AskState,
  Choice,
  Confirm,
  Constraints,
  ErrorDetail,
  Flag,
  HolderKind,
  Kind,
  Message,
  MessageKind,
  MessageList,
  Mode,
  OnDeadline,
  Origin,
  Outcome,
  Provenance,
  Question,
  Scope,
  Session,
  Settlement,
  Snapshot,
  Source,
  Token,
} from "../api.generated.ts";

export type Login = LoginResponse;
export type ErrorBody = ErrorResponse & Partial<Omit<NotFoundResponse, "error">>;
