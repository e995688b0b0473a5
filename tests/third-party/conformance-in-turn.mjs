// Has the conformance suite run few scenarios for clients at once. It starts all of them together, with their servers in its one
// thread. On a busy machine it then answers nothing for more than the 15 s after which a client takes a server for an older one.
import { register } from "node:module";

const hooks = `export async function load(url, context, next) {
    const loaded = await next(url, context);
    if (!url.endsWith("/conformance/dist/index.js")) return loaded;
    const source = String(loaded.source);
    const inTurn = source.replace(/(in parallel\\.\\.\\.\\\\n\`\\);let \\w+=await Promise\\.all\\()(\\w+)\\.map\\(async /, "$1inTurn($2,async ");
    if (inTurn === source) throw new Error("the suite starts its scenarios in another way; correct conformance-in-turn.mjs");
    return { ...loaded, source: inTurn };
}`;
register("data:text/javascript," + encodeURIComponent(hooks));

const places = [Promise.resolve(), Promise.resolve()];
globalThis.inTurn = (scenarios, run) =>
    scenarios.map((scenario, number) => (places[number % places.length] = places[number % places.length].then(() => run(scenario))));
