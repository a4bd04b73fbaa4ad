// Tables in the `code` tool: files read whole or row by row, exact sums, groups, joins, dates, reports.
//
//   const t = await workspace.load("scripts/table.js");
//   const { rows } = await t.read("sales.csv");
//
// Cells of CSV are text; numbers and dates are made of them when asked for. What could be two things is not guessed.

const [read, numbers, dates, rows] = await Promise.all(
  ["read", "numbers", "dates", "rows"].map((name) => workspace.load(`scripts/${name}.js`)),
);

// What is in a file, column by column: the first thing to look at. Reads all of it and holds little.
async function profile(path, options) {
  const columns = new Map();
  const seen = await read.each(path, (row) => {
    for (const name of Object.keys(row)) {
      if (!columns.has(name)) columns.set(name, { filled: 0, values: new Map(), many: false, point: 0, comma: 0, dates: [] });
      const column = columns.get(name);
      const cell = typeof row[name] === "object" && row[name] !== null ? JSON.stringify(row[name]) : String(row[name] ?? "").trim();
      if (cell === "") continue;
      column.filled++;
      let value = column.values.get(cell);
      if (value === undefined) {
        const point = numbers.plain(cell, ".") !== null;
        value = { count: 0, point, comma: /[^\d-]/.test(cell) ? numbers.plain(cell, ",") !== null : point };
        if (column.filled === 1) column.dates = dates.dateOrder([cell]);
        else if (column.dates.length > 0) column.dates = column.dates.filter((order) => dates.date(cell, order) !== null);
        if (column.values.size < 1000) column.values.set(cell, value);
        else column.many = true;
      }
      value.count++;
      if (value.point) column.point++;
      if (value.comma) column.comma++;
    }
  }, options);
  const about = [...columns].map(([name, column]) => {
    const common = [...column.values].sort((one, other) => other[1].count - one[1].count).slice(0, 3).map(([cell]) => cell.slice(0, 60));
    const result = { name, blank: seen.rowCount - column.filled, distinct: column.many ? "more than 1000" : column.values.size, common };
    const most = Math.max(column.point, column.comma);
    if (most * 2 > column.filled) {
      const mark = column.point >= column.comma ? "." : ",";
      const held = [...column.values.keys()].filter((value) => numbers.plain(value, mark) !== null);
      result.number = column.point === column.comma ? numbers.decimalMark(held) : mark;
      if (most < column.filled) result.notNumbers = column.filled - most;
    }
    if (column.dates.length > 0) result.dateOrders = column.dates;
    return result;
  });
  return { ...seen, columns: about };
}

return { ...read, ...numbers, ...dates, ...rows, profile };
