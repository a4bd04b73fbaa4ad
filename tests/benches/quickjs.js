// quickjs-emscripten as an opponent, in a process of its own: a fresh context for each program.
// Reads one JSON line {code} at a time, prints one JSON line {ms, ok}.
const { getQuickJS } = require("quickjs-emscripten");

(async () => {
  const engine = await getQuickJS();
  const lines = require("node:readline").createInterface({ input: process.stdin });
  for await (const line of lines) {
    const { code } = JSON.parse(line);
    const start = process.hrtime.bigint();
    const context = engine.newContext();
    const result = context.evalCode(`(function () {\n${code}\n})()`);
    const ok = !result.error;
    const handle = ok ? result.value : result.error;
    context.dump(handle);
    handle.dispose();
    context.dispose();
    console.log(JSON.stringify({ ms: Number(process.hrtime.bigint() - start) / 1e6, ok }));
  }
})();
