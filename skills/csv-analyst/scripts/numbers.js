// Numbers as people write them, exact sums, and what is said of many of them. What is no number is counted, never dropped.

const MONEY =
  "[\u20ac$\u00a3\u00a5\u20b9]|(?:AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|RON|SEK|SGD|THB|TRY|UAH|USD|ZAR)";
const MONEY_BEFORE = new RegExp(`^([+-]?) ?(?:${MONEY}) ?`);
const MONEY_AFTER = new RegExp(` ?(?:${MONEY})$`);

const WHOLE = /^(?:0|-?[1-9]\d*)$/;
const DECIMAL = /^(?:0|-?[1-9]\d*)\.\d+$/;

// Digits, in groups of three or not, a fraction, an exponent.
const shaped = (group, point) =>
  new RegExp(`^(\\d+|\\d{1,3}(?:(${group})\\d{3})(?:\\2\\d{3})*)?(?:${point}(\\d+)|${point})?(?:[eE]([+-]?\\d{1,3}))?$`);
const WITH_POINT = shaped("[, '\u2019]", "\\.");
const WITH_COMMA = shaped("[. '\u2019]", ",");

// A cell as a plain decimal such as "-1234.50", or null when it is none. Takes currency signs and codes, per cent, (1) and 1- for
// -1, and groups of thousands. `decimal` is "." (default) or ",".
function plain(cell, decimal = ".") {
  if (typeof cell === "number") return Number.isFinite(cell) ? expand(String(cell)) : null;
  if (typeof cell === "bigint") return String(cell);
  // Most cells are plain already, or far from any number.
  if (typeof cell === "string" && (WHOLE.test(cell) || (decimal === "." && DECIMAL.test(cell)))) return cell;
  if (!/\d/.test(cell ?? "")) return null;
  let text = String(cell).replace(/[\s\u00a0\u202f]+/g, " ").replace(/\u2212/g, "-").trim();
  let negative = false;
  const bracketed = /^\((.*)\)$/.exec(text);
  if (bracketed) [text, negative] = [bracketed[1].trim(), true];
  text = text.replace(MONEY_BEFORE, "$1").replace(MONEY_AFTER, "").trim();
  const percent = text.endsWith("%");
  if (percent) text = text.slice(0, -1).trim();
  const signed = /^([+-]?)(.*?)(-?)$/.exec(text);
  if ((signed[1] && signed[3]) || (negative && (signed[1] || signed[3]))) return null;
  negative ||= signed[1] === "-" || signed[3] === "-";
  const shape = decimal === "," ? WITH_COMMA : WITH_POINT;
  const match = shape.exec(signed[2]);
  if (!match || (match[1] === undefined && match[3] === undefined)) return null;
  const whole = (match[1] ?? "0").replace(/\D/g, "").replace(/^0+(?=\d)/, "");
  const plainText = shift(whole, match[3] ?? "", Number(match[4] ?? 0) - (percent ? 2 : 0));
  return negative && /[1-9]/.test(plainText) ? `-${plainText}` : plainText;
}

// Moves the point between the digits of `whole` and `fraction`.
function shift(whole, fraction, places) {
  for (; places > 0; places--) [whole, fraction] = [whole + (fraction[0] ?? "0"), fraction.slice(1)];
  for (; places < 0; places++) [whole, fraction] = [whole.slice(0, -1), (whole.at(-1) ?? "0") + fraction];
  whole = whole.replace(/^0+(?=\d)/, "") || "0";
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

// A number's own notation without exponent.
function expand(text) {
  const [, sign, whole, fraction, exponent] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text);
  return sign + shift(whole, fraction ?? "", Number(exponent ?? 0));
}

// A cell as a number, or null. For sums use `sum`, which does not round.
function number(cell, decimal) {
  const text = plain(cell, decimal);
  return text === null ? null : Number(text);
}

// The decimal mark that fits all cells with points or commas: ".", ",", "either" when both would and the cells mean different
// numbers then, "none" when neither does. "." when there is nothing to decide.
function decimalMark(cells) {
  let [point, comma, differ] = [true, true, false];
  for (const cell of cells) {
    if (!/[.,]/.test(String(cell ?? ""))) continue;
    const [asPoint, asComma] = [plain(cell, "."), plain(cell, ",")];
    [point, comma, differ] = [point && asPoint !== null, comma && asComma !== null, differ || asPoint !== asComma];
  }
  return point ? (comma && differ ? "either" : ".") : comma ? "," : "none";
}

// Adds up cells one by one, exactly: `add(cell)` takes one, `result()` gives the sum as decimal text, with how many cells were
// counted, blank and bad, and the first bad ones.
function adder(decimal) {
  let [total, scale] = [0n, 0];
  const seen = { count: 0, blank: 0, bad: 0, badExamples: [] };
  return {
    add(cell) {
      const text = plain(cell, decimal);
      if (text === null) {
        if (String(cell ?? "").trim() === "") seen.blank++;
        else if (++seen.bad <= 5) seen.badExamples.push(String(cell));
        return;
      }
      seen.count++;
      const point = text.indexOf(".");
      const places = point < 0 ? 0 : text.length - point - 1;
      if (places > scale) {
        total *= 10n ** BigInt(places - scale);
        scale = places;
      }
      const digits = BigInt(point < 0 ? text : text.slice(0, point) + text.slice(point + 1));
      total += places === scale ? digits : digits * 10n ** BigInt(scale - places);
    },
    result() {
      const digits = String(total < 0n ? -total : total).padStart(scale + 1, "0");
      const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
      return { sum: total < 0n ? `-${text}` : text, ...seen };
    },
  };
}

// The exact sum of cells, as `adder` gives it.
function sum(cells, decimal) {
  const all = adder(decimal);
  for (const cell of cells) all.add(cell);
  return all.result();
}

// The value below which a share `p` (0 to 1) of the numbers lies, interpolated between neighbours (type 7: Excel's PERCENTILE.INC).
function percentile(numbers, p) {
  const sorted = Float64Array.from(numbers).sort();
  if (sorted.length === 0 || !(p >= 0 && p <= 1)) return null;
  const place = (sorted.length - 1) * p;
  const low = Math.floor(place);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
}

// Sum, mean, extremes, median, quartiles and the sample's standard deviation of the cells that are numbers.
function stats(cells, decimal) {
  const held = [...cells];
  const result = sum(held, decimal);
  const numbers = held.map((cell) => number(cell, decimal)).filter((value) => value !== null);
  const mean = numbers.length === 0 ? null : Number(result.sum) / numbers.length;
  const squares = numbers.reduce((total, value) => total + (value - mean) ** 2, 0);
  const [min, p25, median, p75, max] = [0, 0.25, 0.5, 0.75, 1].map((p) => percentile(numbers, p));
  return { ...result, mean, min, p25, median, p75, max, stdev: numbers.length > 1 ? Math.sqrt(squares / (numbers.length - 1)) : null };
}

return { plain, number, decimalMark, adder, sum, percentile, stats };
