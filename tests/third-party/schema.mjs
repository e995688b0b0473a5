// Validates frames against the published schema of the gateway's WebSocket: AJV=… SCHEMA=… FRAMES=… node schema.mjs
//
// FRAMES has a JSON object per line: `side` (clientFrame or serverFrame), `frame`, and `valid`, what the schema should say.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { AJV, SCHEMA, FRAMES } = process.env;
const Ajv = createRequire(import.meta.url)(join(AJV, "dist/2020.js")).default;
const schema = JSON.parse(readFileSync(SCHEMA, "utf8"));
const ajv = new Ajv({ allErrors: true, strict: true, strictRequired: false, strictTypes: false, allowUnionTypes: true });
ajv.addSchema({ ...schema, $id: "gateway" });
const seen = {};
for (const line of readFileSync(FRAMES, "utf8").trim().split("\n")) {
  const { side, frame, valid } = JSON.parse(line);
  const validate = ajv.getSchema(`gateway#/$defs/${side}`);
  assert(validate, side);
  const found = validate(frame);
  assert.equal(found, valid, `${side}: ${JSON.stringify(frame).slice(0, 500)}\n${ajv.errorsText(validate.errors)}`);
  const kind = `${side} ${frame.type} ${frame.event?.type ?? frame.method ?? ""}`.trim();
  seen[kind] = (seen[kind] ?? 0) + 1;
}
console.log(JSON.stringify(seen));
