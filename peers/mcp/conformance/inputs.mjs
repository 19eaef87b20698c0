// The calls of the conformance suite that need an input of the client's: what each asks for, round after round.

import { randomBytes } from "node:crypto";

import { createRequestStateCodec, inputRequired } from "@modelcontextprotocol/server";

const codec = createRequestStateCodec({ key: randomBytes(32) });
/** Checks the state that comes back. */
export const verify = codec.verify;

const form = (message, property, type = "string") =>
  inputRequired.elicit({
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: { [property]: { type } }, required: [property] },
  });
const sample = (words, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: words } }], maxTokens });

const userName = form("What is your name?", "name");
const confirm = form("Please confirm", "ok", "boolean");

/** The rounds of each call: what each asks for, by its key. */
const ROUNDS = {
  test_input_required_result_elicitation: [{ user_name: userName }],
  test_input_required_result_sampling: [{ capital_question: sample("What is the capital of France?", 100) }],
  test_input_required_result_list_roots: [{ client_roots: inputRequired.listRoots() }],
  test_input_required_result_request_state: [{ confirm }],
  test_input_required_result_multiple_inputs: [
    { user_name: userName, greeting: sample("Generate a greeting", 50), client_roots: inputRequired.listRoots() },
  ],
  test_input_required_result_multi_round: [
    { step1: form("Step 1: What is your name?", "name") },
    { step2: form("Step 2: What is your favorite color?", "color") },
  ],
  test_input_required_result_tampered_state: [{ confirm }],
  test_input_required_result_capabilities: [{ user_name: userName, greeting: sample("Generate a greeting", 50) }],
  test_missing_capability: [{ greeting: sample("Generate a greeting", 50) }],
  test_streaming_elicitation: [{ user_name: userName }],
  test_input_required_result_prompt: [{ user_context: form("What context should the prompt use?", "context") }],
};
/** Those that keep nothing between the rounds. */
const STATELESS = /_(elicitation|sampling|list_roots|capabilities|capability|prompt)$/;

/** The tools among them. */
export const names = Object.keys(ROUNDS).filter((name) => !name.endsWith("_prompt"));

/** What a call of a client still asks for; undefined once it has everything, or needs nothing. */
export async function asked(name, { inputResponses, requestState, envelope }) {
  const rounds = ROUNDS[name];
  if (!rounds) return undefined;
  const round = requestState()?.round ?? 0;
  const declared = envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
  const possible = ([, { method }]) => name !== "test_input_required_result_capabilities" || method.split("/")[0] in declared;
  const wanted = Object.entries(rounds[round]).filter(possible);
  const missing = wanted.some(([key]) => typeof inputResponses?.[key] !== "object");
  const next = missing ? round : round + 1;
  if (next === rounds.length) return undefined;
  return inputRequired({
    inputRequests: missing ? Object.fromEntries(wanted) : rounds[next],
    ...(STATELESS.test(name) ? {} : { requestState: await codec.mint({ round: next }) }),
  });
}
