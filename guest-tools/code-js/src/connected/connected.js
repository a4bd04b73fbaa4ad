// `fetch` and `workspace` over the functions of the host's side. Runs once, before the snapshot; what it uses of the globals
// is bound here. A call to the host blocks this program and nothing else: each promise is settled when it is there, and
// requests of `Promise.all` are made one after another.
(function (native) {
  "use strict";
  const { isArray } = Array;
  const { entries, defineProperty } = Object;
  const text = String;
  const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
  const { parse } = JSON;
  const Bytes = Uint8Array;
  const Buffer = ArrayBuffer;
  const { isView } = ArrayBuffer;
  const ErrorOf = Error;

  function fail(ErrorClass, failure) {
    const error = new ErrorClass(failure.failure);
    defineProperty(error, "code", { value: failure.code, writable: true, enumerable: true, configurable: true });
    throw error;
  }

  function bytesOf(value, what) {
    if (typeof value === "string") return wellFormed(value);
    if (value instanceof Buffer) return new Bytes(value);
    if (isView(value)) return new Bytes(value.buffer, value.byteOffset, value.byteLength);
    throw new TypeError(`${what} must be a string, an ArrayBuffer or a typed array: use JSON.stringify for objects`);
  }

  class Headers {
    #pairs = [];
    constructor(init) {
      if (init === undefined || init === null) return;
      if (typeof init !== "object") throw new TypeError("headers must be an object or an array of pairs");
      const pairs = init instanceof Headers ? init.#pairs : isArray(init) ? init : entries(init);
      for (const pair of pairs) {
        if (!isArray(pair) || pair.length !== 2) throw new TypeError("each header must be a pair of name and value");
        this.append(pair[0], pair[1]);
      }
    }
    append(name, value) {
      this.#pairs.push([wellFormed(text(name)).toLowerCase(), wellFormed(text(value)).trim()]);
    }
    set(name, value) {
      this.delete(name);
      this.append(name, value);
    }
    delete(name) {
      name = text(name).toLowerCase();
      this.#pairs = this.#pairs.filter((pair) => pair[0] !== name);
    }
    get(name) {
      name = text(name).toLowerCase();
      const values = this.#pairs.filter((pair) => pair[0] === name).map((pair) => pair[1]);
      return values.length === 0 ? null : values.join(", ");
    }
    has(name) {
      return this.get(name) !== null;
    }
    getSetCookie() {
      return this.#pairs.filter((pair) => pair[0] === "set-cookie").map((pair) => pair[1]);
    }
    *entries() {
      const names = [...new Set(this.#pairs.map((pair) => pair[0]))].sort();
      for (const name of names) {
        if (name === "set-cookie") for (const value of this.getSetCookie()) yield [name, value];
        else yield [name, this.get(name)];
      }
    }
    *keys() {
      for (const [name] of this.entries()) yield name;
    }
    *values() {
      for (const [, value] of this.entries()) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    forEach(callback, self) {
      for (const [name, value] of this.entries()) callback.call(self, value, name, this);
    }
    toJSON() {
      return Object.fromEntries(this.entries());
    }
  }

  const reasons = {
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found",
    303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
    401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 410: "Gone",
    422: "Unprocessable Content", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout",
  };

  class Response {
    #body;
    #used = false;
    constructor(answer) {
      this.#body = answer.body;
      this.status = answer.status;
      this.statusText = reasons[answer.status] ?? "";
      this.ok = answer.status >= 200 && answer.status < 300;
      this.url = answer.url;
      this.redirected = answer.redirected;
      this.type = "basic";
      this.headers = new Headers(answer.headers);
    }
    get bodyUsed() {
      return this.#used;
    }
    #take() {
      if (this.#used) throw new TypeError("the body was read already: keep what the first reading gave");
      this.#used = true;
      const body = this.#body;
      this.#body = undefined;
      return body;
    }
    async bytes() {
      return this.#take();
    }
    async arrayBuffer() {
      return this.#take().buffer;
    }
    async text() {
      return native.decode(this.#take());
    }
    async json() {
      return parse(native.decode(this.#take()));
    }
  }

  async function fetch(resource, options) {
    options ??= {};
    if (typeof options !== "object") throw new TypeError("the second argument of fetch must be an object");
    const method = text(options.method ?? "GET").toUpperCase();
    const headers = new Headers(options.headers);
    const redirect = options.redirect ?? "follow";
    if (redirect !== "follow" && redirect !== "error" && redirect !== "manual") {
      throw new TypeError("redirect must be 'follow', 'error' or 'manual'");
    }
    let body = "";
    if (options.body !== undefined && options.body !== null) {
      if (method === "GET" || method === "HEAD") throw new TypeError(`a ${method} request has no body`);
      body = bytesOf(options.body, "the body");
      if (typeof body === "string" && !headers.has("content-type")) headers.set("content-type", "text/plain;charset=UTF-8");
    }
    const answer = native.send(wellFormed(method), wellFormed(text(resource)), [...headers], body, redirect === "follow");
    if ("failure" in answer) fail(TypeError, answer);
    if (redirect === "error" && [301, 302, 303, 307, 308].includes(answer.status)) {
      fail(TypeError, { failure: "the server redirects, and the request says not to follow", code: "redirect" });
    }
    return new Response(answer);
  }

  function done(answer) {
    if (typeof answer === "object" && answer !== null && "failure" in answer) fail(Error, answer);
    return answer;
  }

  function pathOf(path) {
    if (typeof path !== "string") throw new TypeError("the path must be a string");
    return wellFormed(path);
  }

  function numberOf(value, otherwise) {
    if (value === undefined || value === null) return otherwise;
    if (typeof value !== "number" || !(value >= 0)) throw new TypeError("offset and length must be numbers, 0 or more");
    return value;
  }

  function read(path, range) {
    return done(native.read(pathOf(path), numberOf(range?.offset, 0), numberOf(range?.length, -1)));
  }

  const workspace = {
    async readText(path, range) {
      return native.decode(read(path, range));
    },
    async readBytes(path, range) {
      return read(path, range);
    },
    async writeText(path, content) {
      if (typeof content !== "string") throw new TypeError("the text must be a string: use JSON.stringify for objects");
      done(native.write(pathOf(path), wellFormed(content), false));
    },
    async writeBytes(path, content) {
      done(native.write(pathOf(path), bytesOf(content, "the content"), false));
    },
    async appendText(path, content) {
      if (typeof content !== "string") throw new TypeError("the text must be a string: use JSON.stringify for objects");
      done(native.write(pathOf(path), wellFormed(content), true));
    },
    async list(path = ".") {
      return done(native.list(pathOf(path)));
    },
    async stat(path) {
      return done(native.stat(pathOf(path)));
    },
    async exists(path) {
      const answer = native.stat(pathOf(path));
      if ("failure" in answer && answer.code === "missing") return false;
      done(answer);
      return true;
    },
    async remove(path) {
      done(native.remove(pathOf(path)));
    },
    async makeDirectory(path) {
      done(native.makeDirectory(pathOf(path)));
    },
    async load(path) {
      const source = native.decode(read(path));
      try {
        return await native.evaluate(path, source);
      } catch (error) {
        if (error instanceof ErrorOf) error.message = `${path}: ${error.message}`;
        throw error;
      }
    },
  };

  return function grant(network, files) {
    const global = { writable: true, enumerable: false, configurable: true };
    if (network) {
      defineProperty(globalThis, "fetch", { ...global, value: fetch });
      defineProperty(globalThis, "Headers", { ...global, value: Headers });
    }
    if (files) defineProperty(globalThis, "workspace", { ...global, value: workspace });
  };
})
