// Starts the Bot API server of the npm package `telegram-test-api` in PACKAGE on PORT, and ends with its standard input.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const TelegramServer = require(process.env.PACKAGE);
const Server = TelegramServer.default ?? TelegramServer.TelegramServer ?? TelegramServer;
const server = new Server({ port: Number(process.env.PORT), host: "127.0.0.1", storeTimeout: 600 });
await server.start();
console.log("ready");
process.stdin.on("end", () => process.exit(0)).resume();
