// One story with the official TypeScript client library: delegate, wait, answer, read the result and its file.
//
// usage: node story.mjs MODULES stdio COMMAND [ARGUMENT...]
//        node story.mjs MODULES http URL TOKEN
//
// MODULES is the directory in which the library is installed. Prints one line of JSON for each event.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, kind, ...rest] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/`));
const library = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await library("client/index.js");
const { ElicitRequestSchema } = await library("types.js");

// Looks at a run; each waits for the host. More mean that the story does not go on.
const MAX_LOOKS = 600;
const tell = (event) => console.log(JSON.stringify(event));

const client = new Client({ name: "story", version: "1" }, { capabilities: { elicitation: { form: {} } } });
// The person in front of the client: says blue, in the only field of the form.
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  const [[name, field]] = Object.entries(params.requestedSchema.properties);
  tell({ event: "elicitation", message: params.message, field });
  return { action: "accept", content: { [name]: "blue" } };
});

async function call(name, args) {
  const result = await client.callTool({ name, arguments: args }, undefined, { timeout: 120_000 });
  assert(!result.isError, JSON.stringify(result));
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

if (kind === "stdio") {
  const { StdioClientTransport } = await library("client/stdio.js");
  const [command, ...args] = rest;
  await client.connect(new StdioClientTransport({ command, args, env: {} }));
} else {
  const { StreamableHTTPClientTransport } = await library("client/streamableHttp.js");
  const [url, token] = rest;
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
}
const tools = (await client.listTools()).tools.map((tool) => tool.name);
tell({ event: "connected", tools });
const started = await call("core_act", { task: "paint the room", tools: ["write"] });
tell({ event: "started", runId: started.runId });
let run = started;
let seen;
for (let look = 0; look < MAX_LOOKS && !run.isOver; look += 1) {
  run = (await call("core_task", { action: "wait", runId: started.runId, waitSeconds: 20 })).run;
  if (run.waitsFor) {
    if (run.waitsFor.id !== seen) {
      seen = run.waitsFor.id;
      tell({ event: "waits", kind: run.waitsFor.kind, page: run.waitsFor.page, next: run.next });
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
tell({ event: "over", status: run.status, answer: run.answer, artifacts: run.artifacts });
const read = await call("core_task", { action: "artifact", runId: started.runId, path: "plan.txt" });
tell({ event: "artifact", text: read.artifact.text });
await client.close();
