// What programs find beside the language: `console`, which formats roughly as Node does, and JSON for big integers.
// Runs once, before the snapshot. What it uses of the globals is bound here, so that a program which replaces them
// still gets its console lines.
(function (isFull, writeLine) {
  "use strict";
  const MAX_DEPTH = 3;
  const MAX_ITEMS = 100;
  const { stringify } = JSON;
  const { isArray } = Array;
  const { getOwnPropertyDescriptor, getPrototypeOf, keys } = Object;
  const { ownKeys } = Reflect;
  const text = String;
  const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
  const errorOf = Error;

  function quoted(string) {
    return string.includes("'") ? stringify(string) : "'" + stringify(string).slice(1, -1).replaceAll('\\"', '"') + "'";
  }

  function nameOf(object) {
    const constructor = getPrototypeOf(object)?.constructor;
    return typeof constructor === "function" ? constructor.name : "";
  }

  function describe(value, depth, above) {
    switch (typeof value) {
      case "string": return quoted(value);
      case "bigint": return value + "n";
      case "number": return Object.is(value, -0) ? "-0" : text(value);
      case "function": return value.name ? `[Function: ${value.name}]` : "[Function (anonymous)]";
      case "object": return value === null ? "null" : describeObject(value, depth, above);
      default: return text(value);
    }
  }

  function describeObject(object, depth, above) {
    if (above.includes(object)) return "[Circular]";
    if (object instanceof errorOf) {
      const header = `${object.name}: ${object.message}`;
      return depth === 0 ? header : `[${header}]`;
    }
    if (object instanceof Date) return Number.isNaN(object.getTime()) ? "Invalid Date" : object.toISOString();
    if (object instanceof RegExp) return text(object);
    if (object instanceof Promise) return "Promise {}";
    const list = isArray(object) || ArrayBuffer.isView(object);
    const name = nameOf(object);
    if (depth >= MAX_DEPTH) return list ? "[Array]" : `[${name || "Object"}]`;
    const inside = [...above, object];
    if (list && !(object instanceof DataView)) {
      const items = [];
      for (let index = 0; index < object.length && index < MAX_ITEMS; index++) {
        items.push(index in object ? describe(object[index], depth + 1, inside) : "<empty>");
      }
      return group(isArray(object) ? "" : `${name}(${object.length}) `, "[", items, object.length, "]");
    }
    if (object instanceof Map) {
      const items = [];
      for (const [key, value] of object) {
        if (items.length === MAX_ITEMS) break;
        items.push(`${describe(key, depth + 1, inside)} => ${describe(value, depth + 1, inside)}`);
      }
      return group(`Map(${object.size}) `, "{", items, object.size, "}");
    }
    if (object instanceof Set) {
      const items = [];
      for (const value of object) {
        if (items.length === MAX_ITEMS) break;
        items.push(describe(value, depth + 1, inside));
      }
      return group(`Set(${object.size}) `, "{", items, object.size, "}");
    }
    if (object instanceof Number || object instanceof String || object instanceof Boolean) {
      return `[${name}: ${describe(object.valueOf(), depth, above)}]`;
    }
    const shown = ownKeys(object).filter((key) => getOwnPropertyDescriptor(object, key)?.enumerable);
    const items = shown.slice(0, MAX_ITEMS).map((key) => {
      const property = getOwnPropertyDescriptor(object, key);
      const label = typeof key === "symbol" ? `[${text(key)}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key);
      const value = "value" in property ? describe(property.value, depth + 1, inside) : property.get ? "[Getter]" : "[Setter]";
      return `${label}: ${value}`;
    });
    const prefix = getPrototypeOf(object) === null ? "[Object: null prototype] " : name && name !== "Object" ? name + " " : "";
    return group(prefix, "{", items, shown.length, "}");
  }

  function group(prefix, open, items, total, close) {
    if (total > items.length) items.push(`... ${total - items.length} more`);
    return items.length === 0 ? prefix + open + close : `${prefix}${open} ${items.join(", ")} ${close}`;
  }

  function show(value) {
    return typeof value === "string" ? value : describe(value, 0, []);
  }

  function fill(template, values) {
    let used = 0;
    const filled = template.replace(/%[sdifjoOc%]/g, (mark) => {
      if (mark === "%%") return "%";
      if (used === values.length) return mark;
      const value = values[used++];
      switch (mark) {
        case "%s": return typeof value === "object" ? describe(value, MAX_DEPTH - 1, []) : text(value);
        case "%d": return typeof value === "bigint" ? value + "n" : text(Number(value));
        case "%i": return typeof value === "bigint" ? value + "n" : text(Number.parseInt(value, 10));
        case "%f": return text(Number.parseFloat(value));
        case "%j": return stringify(value) ?? "undefined";
        case "%c": return "";
        default: return describe(value, 0, []);
      }
    });
    return [filled, ...values.slice(used).map(show)].join(" ");
  }

  function log(...values) {
    if (isFull()) return;
    const first = values[0];
    const line = typeof first === "string" && values.length > 1 && first.includes("%")
      ? fill(first, values.slice(1))
      : values.length === 1 ? show(first) : values.map(show).join(" ");
    writeLine(wellFormed(line));
  }

  const hidden = { writable: true, enumerable: false, configurable: true };
  const console = {};
  for (const name of ["log", "info", "warn", "error", "debug", "trace", "dir", "table"]) {
    Object.defineProperty(console, name, { ...hidden, enumerable: true, value: log });
  }
  Object.defineProperty(globalThis, "console", { ...hidden, value: console });
  // JSON has no big integers: their digits as a string lose nothing, an error would lose the result.
  Object.defineProperty(BigInt.prototype, "toJSON", {
    ...hidden,
    value: function toJSON() {
      return this.toString();
    },
  });
})
