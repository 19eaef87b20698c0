// Which of its states a card is in. Pure: what the server says, what became of this page's own submission, whether we hear from it.
import type { Ask, ErrorDetail, Settlement } from "../api/types.ts";

/** What became of what this page sent for an ask. */
export type Submission =
  | { is: "posting"; rejected: boolean }
  /** Written to the holder, no verdict yet (504). */
  | { is: "unknown"; rejected: boolean }
  /** Our submission won; `submission` names it. */
  | { is: "won"; submission: string | null }
  /** The holder had it settled already (404). */
  | { is: "lost"; recorded: boolean; chose: string }
  /** Refused by the holder's validation (422); the ask is open. */
  | { is: "invalid"; details: ErrorDetail[] }
  /** Nothing was written (503), or the holder never saw it (UNSEEN). */
  | { is: "undelivered" }
  /** Anything else that kept it from being sent. */
  | { is: "failed"; status: number; message: string };

export type Notice = "invalid" | "undelivered" | "disconnected" | "offline" | "failed" | "parked" | "readonly";

export type End =
  | "mine"
  | "mine-skipped"
  | "other"
  | "other-skipped"
  | "reported"
  | "expired"
  | "withdrawn"
  | "gone"
  | "recorded"
  | "system";

export type Phase = { is: "open"; notice: Notice | null } | { is: "sent" } | { is: "settled"; end: End; settlement: Settlement };

export interface Surroundings {
  /** The signed-in operator's name. */
  me: string;
  mayAnswer: boolean;
  online: boolean;
}

export function phase(ask: Ask, submission: Submission | undefined, around: Surroundings): Phase {
  if (ask.settlement !== null) return { is: "settled", end: endOf(ask.settlement, submission, around.me), settlement: ask.settlement };
  if (submission?.is === "posting" || submission?.is === "unknown" || ask.state === "sent") return { is: "sent" };
  return { is: "open", notice: noticeOf(ask, submission, around) };
}

function noticeOf(ask: Ask, submission: Submission | undefined, around: Surroundings): Notice | null {
  if (!around.online) return "offline";
  if (!around.mayAnswer) return "readonly";
  if (submission?.is === "invalid") return "invalid";
  if (submission?.is === "undelivered") return "undelivered";
  if (submission?.is === "failed") return "failed";
  if (!ask.holder_connected) return "disconnected";
  if (ask.parked_until !== null) return "parked";
  return null;
}

/** Whether an answer of this person may count: the inbox decides, and takes no such ask without an owner; the page only
 * says it first (S16). */
export function isTheirs({ who, origin }: Ask, owner: string | undefined): boolean {
  return !who || who === "operator" || (!!owner && (owner === origin.owner) === (who === "caller"));
}

export function endOf(settlement: Settlement, submission: Submission | undefined, me: string): End {
  const { outcome, provenance } = settlement;
  if (submission?.is === "lost" && submission.recorded) return "recorded";
  switch (outcome) {
    case "timeout":
      return "expired";
    case "withdrawn":
      return settlement.reason === "agent_disconnected" ? "gone" : "withdrawn";
    case "cancel":
      return "withdrawn";
    case "accept":
    case "decline": {
      if (provenance === "system" || provenance === "not_shown") return "system";
      const mine =
        submission?.is === "won"
          ? submission.submission === null || submission.submission === settlement.submission_id
          : submission?.is !== "lost" && provenance === "human" && settlement.by === me;
      if (mine) return outcome === "accept" ? "mine" : "mine-skipped";
      if (settlement.rail !== "inbox" && provenance === "client") return "reported";
      return outcome === "accept" ? "other" : "other-skipped";
    }
    default:
      return "system";
  }
}
