// Sends a token with every request of the conformance suite, which knows no authentication of its own.
// `node --import token.mjs SUITE` with the token in `MOTOR_TOKEN`.
import http from "node:http";
import { createRequire } from "node:module";

const { Agent, setGlobalDispatcher } = createRequire(process.argv[1])("undici");
const authorization = `Bearer ${process.env.MOTOR_TOKEN}`;

// `fetch`, and requests of undici itself.
const withToken = (dispatch) => (options, handler) => {
  const headers = Array.isArray(options.headers)
    ? [...options.headers, "authorization", authorization]
    : { ...(options.headers?.entries ? Object.fromEntries(options.headers.entries()) : options.headers), authorization };
  return dispatch({ ...options, headers }, handler);
};
setGlobalDispatcher(new Agent().compose(withToken));

const { request } = http;
http.request = (...given) => {
  const sent = request(...given);
  sent.setHeader("authorization", authorization);
  return sent;
};
