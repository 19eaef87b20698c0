// What became of the submissions of this page, by ask. Nothing is settled here: the holder's verdict is what is shown.
import { CallError, told } from "../api/client.ts";
import type { Answer, Ask } from "../api/types.ts";
import type { Submission } from "../model/phase.ts";
import * as words from "../words.ts";
import { Cell } from "./cell.ts";
import type { Live } from "./live.ts";

const known = new Map<string, Submission>();
/** Changes whenever any of them does. */
export const submissions = new Cell(0);

export function submissionOf(ask: string): Submission | undefined {
  return known.get(ask);
}

function note(ask: string, submission: Submission): void {
  known.set(ask, submission);
  submissions.set(submissions.get() + 1);
}

export function forgetSubmissions(): void {
  known.clear();
}

/** The person works on the card again: a refusal that they have read is no longer the card's state. */
export function dismiss(ask: string): void {
  const was = known.get(ask)?.is;
  if (was !== "failed" && was !== "undelivered") return;
  known.delete(ask);
  submissions.set(submissions.get() + 1);
}

/** An ask that was `sent` and is open again: the holder never saw our submission. */
export function settleSubmission(ask: Ask): void {
  const submission = known.get(ask.id);
  if (submission?.is !== "unknown") return;
  if (ask.state === "open") note(ask.id, { is: "undelivered" });
  else if (ask.settlement !== null) {
    known.delete(ask.id);
    submissions.set(submissions.get() + 1);
  }
}

/** `chose` is what was sent, in words, for the case that somebody else was first. */
export async function submit(
  live: Live,
  ask: Ask,
  body: { answers: Answer[]; rejected: boolean; reject_reason: string },
  chose: string,
): Promise<Submission> {
  note(ask.id, { is: "posting", rejected: body.rejected });
  const verdict = await live.api
    .send<Ask>("POST", `/asks/${encodeURIComponent(ask.id)}/answer`, body)
    .then((settled): Submission => {
      live.inbox.updated(settled);
      return { is: "won", submission: settled.settlement?.submission_id ?? null };
    })
    .catch((error: unknown) => failure(live, ask, body.rejected, chose, error));
  note(ask.id, verdict);
  live.changed();
  return verdict;
}

/** Sends several as one: all of them or none. What kept them from being sent, in words; "" where nothing did. */
export async function submitTogether(live: Live, answers: ReadonlyMap<Ask, Answer[]>): Promise<string> {
  for (const ask of answers.keys()) note(ask.id, { is: "posting", rejected: false });
  const body = { submissions: [...answers].map(([ask, list]) => ({ id: ask.id, answers: list, rejected: false })) };
  try {
    const { asks } = await live.api.send<{ asks: Ask[] }>("POST", "/asks/answer-batch", body);
    for (const ask of asks) {
      live.inbox.updated(ask);
      note(ask.id, { is: "won", submission: ask.settlement?.submission_id ?? null });
    }
    return "";
  } catch (error) {
    for (const ask of answers.keys()) {
      if (error instanceof CallError && error.status === 504) note(ask.id, { is: "unknown", rejected: false });
      else known.delete(ask.id);
    }
    return words.togetherFailed(told(error));
  } finally {
    submissions.set(submissions.get() + 1);
    live.changed();
  }
}

function failure(live: Live, ask: Ask, rejected: boolean, chose: string, error: unknown): Submission {
  if (!(error instanceof CallError)) return { is: "failed", status: 0, message: "" };
  switch (error.status) {
    case 404: {
      if (error.settlement !== null) {
        const latest = live.inbox.asks.get(ask.id) ?? ask;
        live.inbox.updated({ ...latest, state: "settled", settlement: error.settlement });
        return { is: "lost", recorded: error.recorded, chose };
      }
      return { is: "failed", status: 404, message: error.message };
    }
    case 422:
      return { is: "invalid", details: error.details };
    case 503:
      return error.code === "HOLDER_NOT_CONNECTED" ? { is: "undelivered" } : { is: "failed", status: 503, message: error.message };
    case 504:
      return { is: "unknown", rejected };
    default:
      return { is: "failed", status: error.status, message: error.message };
  }
}
