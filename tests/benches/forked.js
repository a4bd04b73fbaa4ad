// The forked design, for comparison: one Node process for each program, stripped of globals, killed at the end.
// As parent: reads one JSON line {code} at a time, prints one JSON line {ms, ok}. As child: runs one program.
const { fork } = require("node:child_process");

if (process.argv[2] === "worker") {
  const send = process.send.bind(process);
  for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "require", "module", "exports"]) {
    try {
      Object.defineProperty(globalThis, name, { value: undefined, writable: false, configurable: false });
    } catch {}
  }
  process.on("message", async ({ code }) => {
    try {
      const result = await new Function(`'use strict';\nreturn (async () => {\n${code}\n})()`)();
      send({ ok: true, result });
    } catch (error) {
      send({ ok: false, error: error.message });
    }
  });
} else {
  const lines = require("node:readline").createInterface({ input: process.stdin });
  const run = (code) =>
    new Promise((resolve) => {
      const start = process.hrtime.bigint();
      const child = fork(__filename, ["worker"], { env: {}, stdio: ["pipe", "pipe", "pipe", "ipc"] });
      child.on("message", (message) => {
        const ms = Number(process.hrtime.bigint() - start) / 1e6;
        child.kill("SIGKILL");
        child.on("exit", () => resolve({ ms, ok: message.ok, result: message.result }));
      });
      child.send({ code });
    });
  (async () => {
    for await (const line of lines) {
      console.log(JSON.stringify(await run(JSON.parse(line).code)));
    }
  })();
}
