// Smuggled frames (S3) in front of every SDK server: none of them runs anything, each is answered with -32600, and the
// connection goes on. What the same frame does to the server alone is printed next to it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { behindGateway, linesOf, scratch, SERVERS } from "./peers.mjs";
import { disguised, smuggled } from "./smuggled-frames.mjs";
import { Wire } from "./wire.mjs";

const INVALID_REQUEST = -32600;
const A_PERSON = { HANDRAISE_ASK_MIN_HUMAN_MS: "0" };

for (const server of SERVERS) {
  for (const isModern of server.modern ? [false, true] : [false]) {
    const era = isModern ? "mrtr" : "push";
    test(`s3: frames smuggled to ${server.name}, ${era}`, async (context) => {
      const folder = scratch(context);
      const frames = smuggled(isModern);
      assert.ok(frames.length >= 30);
      const alone = await aloneWith(server, isModern, frames, join(folder, "alone"));
      const witness = join(folder, "witness");
      const wire = new Wire(behindGateway([...server.command, witness], join(folder, "log")), isModern, A_PERSON);
      context.after(() => wire.close());
      assert.ok((await wire.open())?.result, "the connection comes about");
      for (const [index, [name, frame]] of frames.entries()) {
        await context.test(`${name} (alone: ${alone[index]})`, async () => {
          const id = `smuggled ${index}`;
          const before = linesOf(witness);
          const { frames, isAlive } = await wire.before(frame(id));
          assert.ok(isAlive, "the connection goes on");
          assert.deepEqual(frames.map((frame) => frame.error?.code), [INVALID_REQUEST]);
          assert.ok([id, null].includes(frames[0].id), `answered under its id or none, not ${frames[0].id}`);
          assert.deepEqual(linesOf(witness), before, "nothing ran");
        });
      }
      assert.deepEqual(linesOf(witness), [], "nothing ran late");
      for (const [index, [name, frame]] of disguised(isModern).entries()) {
        await context.test(`recognised: ${name}`, () => recognised(wire, frame(`disguised ${index}`), witness, index));
      }
    });
  }
}

/** The call is one of a tool, whatever it looks like: its refusal becomes a question. */
async function recognised(wire, frame, witness, index) {
  const id = `disguised ${index}`;
  const before = linesOf(witness).length;
  wire.send(frame);
  const asked = await wire.next();
  const question = wire.isModern ? asked.result?.inputRequests?.deviceChoice : asked;
  assert.equal(question?.method, "elicitation/create", JSON.stringify(asked));
  if (!wire.isModern) {
    wire.send(JSON.stringify({ jsonrpc: "2.0", id: asked.id, result: { action: "cancel" } }));
    const refused = await wire.next();
    assert.equal(refused.id, id);
    assert.ok(refused.result.isError);
  }
  assert.equal(linesOf(witness).length, before + 1, "it ran once");
}

/** What the frames do to the server alone, each in words: whether it ran something, and what it answered. */
async function aloneWith(server, isModern, frames, witness) {
  const seen = [];
  let wire;
  for (const [index, [, frame]] of frames.entries()) {
    if (!wire) {
      wire = new Wire([...server.command, witness], isModern);
      await wire.open();
    }
    const before = linesOf(witness).length;
    const { frames, isAlive } = await wire.before(frame(`alone ${index}`));
    const ran = linesOf(witness).length - before;
    const answers = frames.map((frame) => frame.error?.code ?? (frame.result ? "a result" : frame.method));
    seen.push(`${ran > 0 ? `ran ${ran}` : "ran nothing"}, ${isAlive ? answers.join(" and ") || "silent" : "died"}`);
    if (!isAlive) wire = undefined;
  }
  await wire?.close();
  return seen;
}
