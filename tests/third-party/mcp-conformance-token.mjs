// Sends the token in TOKEN with each request of the conformance suite, which knows no servers that want one. SUITE is its
// program.
import http from "node:http";
import { createRequire, syncBuiltinESMExports } from "node:module";

const header = `Bearer ${process.env.TOKEN}`;
const fetchWithout = globalThis.fetch;
globalThis.fetch = (input, init = {}) => {
    const headers = new Headers(init.headers ?? input?.headers);
    headers.set("authorization", header);
    return fetchWithout(input, { ...init, headers });
};
// Some scenarios choose headers that `fetch` does not let them choose.
const requestWithout = http.request;
http.request = (options, ...rest) => {
    return requestWithout({ ...options, headers: { ...options.headers, authorization: header } }, ...rest);
};
syncBuiltinESMExports();
const undici = createRequire(process.env.SUITE)("undici");
const withToken = (dispatch) => (options, handler) => {
    return dispatch({ ...options, headers: { ...options.headers, authorization: header } }, handler);
};
undici.setGlobalDispatcher(undici.getGlobalDispatcher().compose(withToken));
