// Run once before the snapshot: what it touches is there, and warm, for every program after it.
{
  class Point { #x = 1; get x() { return this.#x; } static of() { return new Point(); } }
  const rows = JSON.parse('[{"name":"a","value":1.5},{"name":"b","value":-2e3,"tags":["x",null,true]}]');
  const total = rows.map((row) => row.value).filter(Number.isFinite).reduce((sum, value) => sum + value, 0);
  const byName = new Map(rows.map(({ name, ...rest }) => [name, rest]));
  const words = "the quick brown fox".replace(/(\w+) (\w+)/giu, "$2 $1").split(/\s+/).sort((a, b) => a.localeCompare(b));
  const matches = [..."a1b22".matchAll(/(?<letter>[a-z])(\d+)/g)].map((match) => match.groups.letter);
  function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  let text = `${total.toFixed(2)} ${fib(8)} ${Math.pow(1.05, 10)} ${new Date(0).toISOString()} ${Point.of().x}`;
  for (const word of new Set(words)) text += word.padStart(8).toUpperCase();
  try { null.x; } catch (error) { text += error.message; }
  console.log(text, { matches, byName }, Object.entries(rows[0]), 10n ** 20n);
  await Promise.all([1, Promise.resolve(2), (async () => 3)()]);
  JSON.stringify({ rows, words, text, now: Date.now(), random: Math.random() }, null, 2);
}
