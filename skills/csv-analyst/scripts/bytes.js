// The text of a file, whatever its encoding: UTF-8, UTF-16 with a mark, windows-1252. In pieces, so that a file may be larger than
// what fits into memory.

const CHUNK_BYTES = 1 << 20;

// What bytes 128 to 159 are in windows-1252, which is what spreadsheets mean by "ANSI".
const WINDOWS_1252 = "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";

function latin(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 8192) parts.push(String.fromCharCode.apply(null, bytes.subarray(at, at + 8192)));
  return parts.join("");
}

// The text of bytes from 128 up that stand together in UTF-8, each as a character of its own here; null when they are not UTF-8.
function together(run) {
  const units = [];
  for (let at = 0; at < run.length; ) {
    const lead = run.charCodeAt(at++);
    const more = lead >= 0xf0 && lead < 0xf5 ? 3 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xc2 && lead < 0xe0 ? 1 : 0;
    if (more === 0 || at + more > run.length) return null;
    let point = lead & (0x3f >> more);
    for (let next = 0; next < more; next++) {
      const byte = run.charCodeAt(at++);
      if ((byte & 0xc0) !== 0x80) return null;
      point = (point << 6) | (byte & 0x3f);
    }
    if (point < [0, 0x80, 0x800, 0x10000][more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return null;
    units.push(String.fromCodePoint(point));
  }
  return units.join("");
}

// Whether bytes are UTF-8, to the letter.
function isUtf8(bytes) {
  const [text, high] = [latin(bytes), /[\x80-\xff]+/g];
  for (let run; (run = high.exec(text)) !== null; ) if (together(run[0]) === null) return false;
  return true;
}

function decode(bytes, encoding) {
  if (encoding === "windows-1252") return latin(bytes).replace(/[\x80-\x9f]/g, (char) => WINDOWS_1252[char.charCodeAt(0) - 128]);
  const little = encoding === "utf-16le";
  const units = new Uint16Array(bytes.length >> 1);
  for (let at = 0; at < units.length; at++) units[at] = bytes[2 * at + (little ? 0 : 1)] | (bytes[2 * at + (little ? 1 : 0)] << 8);
  return latin(units);
}

// The file's text in pieces that end with a line, after `{ encoding }`.
async function* pieces(path, options) {
  const { size } = await workspace.stat(path);
  const start = await workspace.readBytes(path, { offset: 0, length: Math.min(size, CHUNK_BYTES) });
  let [encoding, at] = [options.encoding, 0];
  if (start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf) [encoding, at] = ["utf-8", 3];
  else if (start[0] === 0xff && start[1] === 0xfe) [encoding, at] = ["utf-16le", 2];
  else if (start[0] === 0xfe && start[1] === 0xff) [encoding, at] = ["utf-16be", 2];
  const toLine = (bytes) => bytes.subarray(0, Math.max(bytes.lastIndexOf(10), bytes.lastIndexOf(13)) + 1);
  if (!encoding) encoding = isUtf8(size > start.length ? toLine(start) : start) ? "utf-8" : "windows-1252";
  yield { encoding };
  if (encoding.startsWith("utf-16")) {
    // A byte 10 need not end a line here, so the file is read whole.
    yield decode((await workspace.readBytes(path)).subarray(at), encoding);
    return;
  }
  for (let length = CHUNK_BYTES; at < size; ) {
    const bytes = await workspace.readBytes(path, { offset: at, length: Math.min(length, size - at) });
    const whole = at + bytes.length >= size ? bytes : toLine(bytes);
    if (whole.length === 0) {
      length *= 2;
      continue;
    }
    const text = encoding === "utf-8" ? await workspace.readText(path, { offset: at, length: whole.length }) : decode(whole, encoding);
    // What is no UTF-8 was read as this character, which a file may also hold.
    if (encoding === "utf-8" && text.includes("\ufffd") && !isUtf8(whole)) {
      throw new Error(`${path} is not UTF-8 after byte ${at}: pass { encoding: "windows-1252" }`);
    }
    yield text;
    [at, length] = [at + whole.length, CHUNK_BYTES];
  }
}

return { pieces };
