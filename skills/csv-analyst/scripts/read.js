// CSV, JSON and JSON lines, whole or row by row. Nothing is left out in silence: what could not be read is in `problems`.

const { pieces } = await workspace.load("scripts/bytes.js");

const MOST_RECORD_CHARS = 4 << 20;
const MOST_PROBLEMS = 20;

// Reads the records of CSV text (RFC 4180) that comes in pieces. `onRecord` gets cells and the line they begin on.
function csvReader(delimiter, onRecord, onProblem) {
  let [buffer, line, lineEnd] = ["", 1, null];
  function quotedRecord(from) {
    const cells = [];
    let [at, lines] = [from, 0];
    for (;;) {
      let cell = "";
      if (buffer[at] === '"') {
        for (at++; ; ) {
          const quote = buffer.indexOf('"', at);
          if (quote < 0) return null;
          cell += buffer.slice(at, quote);
          at = quote + 1;
          if (buffer[at] !== '"') break;
          cell += '"';
          at++;
        }
        lines += cell.split("\n").length - 1;
      }
      let end = at;
      if (buffer[end] !== delimiter && buffer[end] !== "\n" && end < buffer.length) {
        const newline = buffer.indexOf("\n", at);
        const lineEnds = newline < 0 ? buffer.length : newline;
        const within = buffer.slice(at, lineEnds).indexOf(delimiter);
        end = within < 0 ? lineEnds : at + within;
      }
      const rest = buffer[end] === delimiter ? buffer.slice(at, end) : buffer.slice(at, end).replace(/\r$/, "");
      if (rest !== "" && cell !== "") onProblem(line, "text after a closing quote");
      cells.push(cell + rest);
      if (buffer[end] !== delimiter) return { cells, end, ended: buffer[end] === "\n", lines };
      at = end + 1;
    }
  }
  return function feed(text, isLast) {
    if (lineEnd === null) lineEnd = text.includes("\n") || !text.includes("\r") ? "\n" : "\r";
    buffer += lineEnd === "\r" ? text.replaceAll("\r", "\n") : text;
    let at = 0;
    while (at < buffer.length) {
      const newline = buffer.indexOf("\n", at);
      if (newline < 0 && !isLast) break;
      const end = newline < 0 ? buffer.length : newline;
      const plain = buffer.slice(at, end);
      if (!plain.includes('"')) {
        const record = plain.endsWith("\r") ? plain.slice(0, -1) : plain;
        if (record !== "") onRecord(record.split(delimiter), line);
        [at, line] = [end + 1, line + 1];
        continue;
      }
      const record = quotedRecord(at);
      if (record === null || (!record.ended && !isLast)) {
        if (record === null && (isLast || buffer.length - at > MOST_RECORD_CHARS)) {
          throw new Error(`line ${line}: a quoted cell does not end`);
        }
        break;
      }
      onRecord(record.cells, line);
      [at, line] = [record.end + 1, line + record.lines + 1];
    }
    buffer = buffer.slice(at);
  };
}

// The character that parts the first lines into most cells, the same number in each.
function sniff(text) {
  const lines = text.replace(/"(?:[^"]|"")*"/g, "").split(/\r\n|\n|\r/).filter((line) => line !== "").slice(0, 20);
  let best = { delimiter: ",", score: 0 };
  for (const delimiter of [",", ";", "\t", "|"]) {
    const counts = lines.map((line) => line.split(delimiter).length - 1);
    const same = counts.filter((count) => count === counts[0]).length / Math.max(1, counts.length);
    const score = counts[0] > 0 ? same * 100 + counts[0] / 100 : 0;
    if (score > best.score) best = { delimiter, score };
  }
  return best.delimiter;
}

// Names for columns: none empty, none twice.
function namesOf(cells, problem) {
  const names = [];
  for (const [index, cell] of cells.entries()) {
    const wanted = cell.trim() || `column_${index + 1}`;
    let name = wanted;
    for (let copy = 2; names.includes(name); copy++) name = `${wanted}_${copy}`;
    if (name !== cell.trim()) problem(1, `column ${index + 1} is called \`${name}\` here`);
    names.push(name);
  }
  return names;
}

// Calls `onRow(row, line)` for every row of a file without holding all of them. `.json` has to be an array of objects, or an
// object with one such array; `.jsonl` and `.ndjson` have one object a line; all else is CSV. Options for CSV: `delimiter`,
// `encoding`, `header: false`. Gives `{ columns, rowCount, encoding, delimiter, problems, problemCount }`.
async function each(path, onRow, options = {}) {
  const seen = { columns: [], rowCount: 0, problems: [], problemCount: 0 };
  const problem = (line, text) => {
    seen.problemCount++;
    if (seen.problems.length < MOST_PROBLEMS) seen.problems.push(`line ${line}: ${text}`);
  };
  const kind = /\.(json|jsonl|ndjson)$/i.exec(path)?.[1].toLowerCase() ?? "csv";
  const known = new Set();
  const give = (row, line) => {
    if (kind !== "csv") {
      if (row === null || typeof row !== "object" || Array.isArray(row)) return problem(line, "is not an object");
      for (const name of Object.keys(row)) if (!known.has(name)) known.add(name);
    }
    seen.rowCount++;
    onRow(row, line);
  };
  if (kind === "json") {
    const value = JSON.parse((await workspace.readText(path)).replace(/^\uFEFF/, ""));
    const lists = Array.isArray(value) ? [value] : Object.values(value ?? {}).filter(Array.isArray);
    if (lists.length !== 1) throw new Error(`${path} holds ${lists.length} lists where one is needed: pick it with JSON.parse`);
    lists[0].forEach((row, index) => give(row, index + 1));
  } else {
    let [feed, line, carry] = [null, 0, ""];
    const jsonLines = (text, isLast) => {
      const lines = (carry + text).split("\n");
      carry = isLast ? "" : lines.pop();
      for (const each of lines) {
        line++;
        if (each.trim() === "") continue;
        try {
          give(JSON.parse(each), line);
        } catch (error) {
          if (!(error instanceof SyntaxError)) throw error;
          problem(line, "is not JSON");
        }
      }
    };
    const onRecord = (cells, line) => {
      if (known.size === 0) {
        const names = namesOf(options.header === false ? cells.map(() => "") : cells, options.header === false ? () => {} : problem);
        names.forEach((name) => known.add(name));
        seen.columns = names;
        if (options.header !== false) return;
      }
      const { columns } = seen;
      if (cells.length !== columns.length) problem(line, `has ${cells.length} cells, not ${columns.length}`);
      // No prototype, so that a column may be called anything.
      const row = Object.create(null);
      for (let index = 0; index < columns.length; index++) row[columns[index]] = cells[index] ?? "";
      give(row, line);
    };
    for await (const piece of pieces(path, options)) {
      if (typeof piece === "object") {
        seen.encoding = piece.encoding;
        continue;
      }
      if (feed === null && kind === "csv") {
        seen.delimiter = options.delimiter ?? sniff(piece.slice(0, 65536));
        feed = csvReader(seen.delimiter, onRecord, problem);
      }
      (feed ?? jsonLines)(piece, false);
    }
    (feed ?? jsonLines)("", true);
  }
  if (kind !== "csv") seen.columns = [...known];
  return seen;
}

// All rows of a file, beside what `each` gives.
async function read(path, options) {
  const rows = [];
  const seen = await each(path, (row) => rows.push(row), options);
  return { ...seen, rows };
}

return { each, read };
