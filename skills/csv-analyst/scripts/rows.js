// Rows: grouped, joined, flattened, and written as CSV or Markdown.

const keyed = (by) => (typeof by === "function" ? by : Array.isArray(by) ? (row) => by.map((name) => row[name]) : (row) => row[by]);
const idOf = (key) => (typeof key === "string" ? `s${key}` : JSON.stringify(key) ?? "undefined");

// Rows with the same key, in the order in which keys first come: `[{ key, rows }]`. `by` is a column, a list of columns, or a
// function of the row.
function group(rows, by) {
  const [of, groups] = [keyed(by), new Map()];
  for (const row of rows) {
    const key = of(row);
    const id = idOf(key);
    if (!groups.has(id)) groups.set(id, { key, rows: [] });
    groups.get(id).rows.push(row);
  }
  return [...groups.values()];
}

// Pairs each row on the left with those on the right that have its key. `on` is a column, or `[left, right]`; `kind` is "inner"
// (default) or "left", which keeps rows without a partner. Columns of the right that the left has too are called `right_NAME`.
// `unmatchedLeft`, `unmatchedRight` and `repeated` (keys that are on both sides several times, so that rows multiply) say
// whether the join means what it should.
function join(left, right, on, kind = "inner") {
  const [leftKey, rightKey] = Array.isArray(on) ? on : [on, on];
  const index = new Map(group(right, rightKey).map((each) => [idOf(each.key), { rows: each.rows, used: 0 }]));
  const result = { rows: [], unmatchedLeft: 0, unmatchedRight: 0, repeated: 0 };
  for (const row of left) {
    const found = index.get(idOf(row[leftKey]));
    if (!found) {
      result.unmatchedLeft++;
      if (kind === "left") result.rows.push(row);
      continue;
    }
    if (++found.used === 2 && found.rows.length > 1) result.repeated++;
    for (const other of found.rows) {
      const pair = Object.assign(Object.create(null), row);
      for (const name of Object.keys(other)) {
        if (name === rightKey && leftKey === rightKey) continue;
        pair[name in pair ? `right_${name}` : name] = other[name];
      }
      result.rows.push(pair);
    }
  }
  for (const { rows, used } of index.values()) if (used === 0) result.unmatchedRight += rows.length;
  return result;
}

// Nested objects as one row with names such as `address.city`; lists become JSON text.
function flatten(value, prefix = "", row = Object.create(null)) {
  for (const [name, inner] of Object.entries(value)) {
    if (inner !== null && typeof inner === "object" && !Array.isArray(inner)) flatten(inner, `${prefix}${name}.`, row);
    else row[prefix + name] = Array.isArray(inner) ? JSON.stringify(inner) : inner;
  }
  return row;
}

const columnsOf = (rows) => [...new Set(rows.flatMap((row) => Object.keys(row)))];
const textOf = (cell) => (cell !== null && typeof cell === "object" ? JSON.stringify(cell) : String(cell ?? ""));

// Rows as CSV (RFC 4180). Text that a spreadsheet would run as a formula gets a `'` in front.
function toCsv(rows, columns = columnsOf(rows)) {
  const quoted = (cell) => {
    let text = textOf(cell);
    if (/^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.,]+(?:[eE][+-]?\d+)?%?$/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows.map((row) => columns.map((name) => row[name]))].map((cells) => `${cells.map(quoted).join(",")}\r\n`).join("");
}

// Rows as a Markdown table.
function toMarkdown(rows, columns = columnsOf(rows)) {
  const cell = (value) => textOf(value).replaceAll("\\", "\\\\").replaceAll("|", "\\|").replace(/\s+/g, " ").trim();
  const line = (cells) => `| ${cells.map(cell).join(" | ")} |\n`;
  return line(columns) + `|${" --- |".repeat(columns.length)}\n` + rows.map((row) => line(columns.map((name) => row[name]))).join("");
}

return { group, join, flatten, toCsv, toMarkdown };
