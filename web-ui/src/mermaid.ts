// Draws diagrams in a frame of its own, which the gateway's answer cuts off from the page and from every network: Mermaid is
// large, and reads what a model wrote. `diagrams.ts` asks, and shows what comes back as a picture.

import mermaid from "mermaid";

/** Longest reason of a failure, in characters. */
const LONGEST_REASON = 400;

mermaid.initialize({
  startOnLoad: false,
  securityLevel: "strict",
  suppressErrorRendering: true,
  theme: "default",
  // The other one is left out of this file.
  layout: "dagre",
  fontFamily: "sans-serif",
  // Labels are text of the picture, without HTML.
  htmlLabels: false,
  flowchart: { htmlLabels: false },
  maxTextSize: 20_000,
  maxEdges: 500,
  // What a diagram cannot set for itself.
  secure: ["secure", "securityLevel", "startOnLoad", "suppressErrorRendering", "maxTextSize", "maxEdges", "htmlLabels", "flowchart", "fontFamily", "layout"],
});

addEventListener("message", (event: MessageEvent<{ number: number; text: string }>) => {
  if (event.source !== parent) return;
  const { number, text } = event.data;
  mermaid.render(`diagram-${number}`, text).then(
    ({ svg }) => parent.postMessage({ number, svg }, "*"),
    (failure) => parent.postMessage({ number, reason: String(failure?.message ?? failure).slice(0, LONGEST_REASON) }, "*"),
  );
});
parent.postMessage("ready", "*");
