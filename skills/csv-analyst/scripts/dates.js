// Dates without a time zone: read in a stated order, counted in whole days.

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAY_MS = 86_400_000;

function made(year, month, day) {
  const at = new Date(Date.UTC(year, month - 1, day));
  at.setUTCFullYear(year, month - 1, day);
  const exists = at.getUTCFullYear() === year && at.getUTCMonth() === month - 1 && at.getUTCDate() === day;
  return exists && year > 0 ? at.toISOString().slice(0, 10) : null;
}

// A cell as "YYYY-MM-DD", or null when it is none. `order` says what `03/04/2026` means: "dmy" or "mdy"; without it only what has
// one meaning is read: ISO dates, with or without a time, and those that name the month. A time of day is cut off as it stands.
function date(cell, order) {
  const text = String(cell ?? "").trim();
  const iso = /^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ]\d{1,2}:\d{2}.*)?$/.exec(text) ?? /^(\d{4})(\d{2})(\d{2})$/.exec(text);
  if (iso) return made(Number(iso[1]), Number(iso[2]), Number(iso[3]));
  const named = /^(?:[a-z]{3,9},? )?(?:(\d{1,2})(?:st|nd|rd|th)?[ -]([a-z]{3,9})\.?,?[ -](\d{4})|([a-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4}))$/i.exec(text);
  if (named) {
    const month = MONTHS.indexOf((named[2] ?? named[4]).slice(0, 3).toLowerCase()) + 1;
    return month === 0 ? null : made(Number(named[3] ?? named[6]), month, Number(named[1] ?? named[5]));
  }
  const numbers = /^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?:[T ,]+\d{1,2}:\d{2}.*)?$/.exec(text);
  if (!numbers || (order !== "dmy" && order !== "mdy")) return null;
  const [first, second, year] = [Number(numbers[1]), Number(numbers[2]), Number(numbers[3])];
  return order === "dmy" ? made(year, second, first) : made(year, first, second);
}

// The orders in which all cells are dates: ["dmy"] or ["mdy"] when one number over 12 decides it, both when nothing does, and then
// the answer depends on it; ["ymd"] when no order is needed; [] when some cell is no date.
function dateOrder(cells) {
  const filled = [...cells].filter((cell) => String(cell ?? "").trim() !== "");
  if (filled.length === 0) return [];
  if (filled.every((cell) => date(cell) !== null)) return ["ymd"];
  return ["dmy", "mdy"].filter((order) => filled.every((cell) => date(cell, order) !== null));
}

// The date of a spreadsheet's day number, where 1 is 1900-01-01 and 60 is the day that never was: null.
function serialDate(serial) {
  if (!Number.isFinite(serial) || serial < 1 || serial >= 2_958_466 || Math.floor(serial) === 60) return null;
  const days = Math.floor(serial) - (serial < 60 ? 0 : 1);
  return new Date(Date.UTC(1899, 11, 31) + days * DAY_MS).toISOString().slice(0, 10);
}

// Nights from one "YYYY-MM-DD" to another.
function days(from, to) {
  return (Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / DAY_MS;
}

// Parts to group by.
const year = (iso) => iso.slice(0, 4);
const month = (iso) => iso.slice(0, 7);
const quarter = (iso) => `${iso.slice(0, 4)}-Q${Math.ceil(Number(iso.slice(5, 7)) / 3)}`;
const weekday = (iso) => ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][new Date(`${iso}T00:00:00Z`).getUTCDay()];

// The ISO week, such as "2026-W02".
function week(iso) {
  const day = new Date(`${iso}T00:00:00Z`);
  day.setUTCDate(day.getUTCDate() + 4 - (day.getUTCDay() || 7));
  const first = Date.UTC(day.getUTCFullYear(), 0, 1);
  return `${day.getUTCFullYear()}-W${String(Math.floor((day - first) / DAY_MS / 7) + 1).padStart(2, "0")}`;
}

return { date, dateOrder, serialDate, days, year, quarter, month, week, weekday };
