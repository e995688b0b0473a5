#!/usr/bin/env node
// Starts the program of this platform, which npm has installed as an optional dependency of this package.
"use strict";
const { spawn } = require("node:child_process");

const system = `${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "myclaw.exe" : "myclaw";
const names = [`myclaw-${system}`, `myclaw-${system}-musl`];

function find() {
  for (const name of names) {
    try {
      return require.resolve(`${name}/bin/${file}`);
    } catch {
      // The next one, or none.
    }
  }
  console.error(
    `myclaw: the package ${names[0]} is missing. Install again without --omit=optional; ` +
      `if npm then finds no such package, there is no program for ${system} yet`,
  );
  process.exit(1);
}

const child = spawn(find(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`myclaw: the program cannot be started: ${error.message}`);
  process.exit(1);
});
// Ctrl-C in a terminal reaches the program by itself; other signals are passed on.
const passed = process.stdin.isTTY ? ["SIGTERM", "SIGHUP"] : ["SIGTERM", "SIGHUP", "SIGINT"];
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => passed.includes(signal) && child.kill(signal));
}
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    return;
  }
  process.exit(code);
});
