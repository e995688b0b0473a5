// Diagrams in answers. It is loaded when an answer has some.

/** Longest text of a diagram. What is longer stays text: it would take too long, and nobody could read it. */
const LONGEST = 20_000;
const MOST_LINES = 1_000;
/** How long a diagram may take, in milliseconds. */
const PATIENCE = 15_000;
/** How long the frame may take to load. */
const LOADING = 60_000;

interface Drawn {
  svg?: string;
  reason?: string;
}

let frame: Promise<HTMLIFrameElement> | null = null;
/** The diagrams are drawn one after the other. */
let queue: Promise<unknown> = Promise.resolve();
let count = 0;

/** Draws the diagrams in `place`. What they are made of stays below them; one that cannot be drawn is shown as that alone. */
export function showDiagrams(place: Element): void {
  for (const code of place.querySelectorAll("pre code.language-mermaid")) {
    const text = code.textContent ?? "";
    const block = code.closest(".code-block");
    if (!block) continue;
    if (text.length > LONGEST || text.split("\n").length > MOST_LINES) {
      note(block, "The diagram is too large to be drawn.");
      continue;
    }
    // An answer that is over is drawn anew, and what stood for it is gone.
    const drawing = queue.then(() => (block.isConnected ? draw(text) : {}));
    queue = drawing.catch(() => {});
    drawing.then(
      ({ svg, reason }: Drawn) => {
        if (svg) show(block, svg);
        else if (reason) note(block, `The diagram cannot be drawn: ${reason}`);
      },
      (failure: Error) => note(block, failure.message),
    );
  }
}

function note(block: Element, text: string): void {
  const line = document.createElement("p");
  line.className = "diagram-note muted";
  line.textContent = text;
  block.after(line);
}

/** A picture, in which nothing runs and which loads nothing. */
function show(block: Element, svg: string): void {
  const figure = document.createElement("figure");
  figure.className = "diagram";
  const image = document.createElement("img");
  image.alt = "diagram";
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  image.onload = () => URL.revokeObjectURL(image.src);
  image.onerror = () => {
    URL.revokeObjectURL(image.src);
    image.remove();
  };
  // A drawing is as wide as its place and has no width of its own.
  const width = Number(/viewBox="\S+ \S+ ([\d.]+) /.exec(svg)?.[1]);
  if (width) image.width = Math.ceil(width);
  const source = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Its text";
  block.replaceWith(figure);
  source.append(summary, block);
  figure.append(image, source);
}

async function draw(text: string): Promise<Drawn> {
  frame ??= begin();
  let own: HTMLIFrameElement;
  try {
    own = await frame;
  } catch (failure) {
    frame = null;
    throw failure;
  }
  const number = ++count;
  own.contentWindow?.postMessage({ number, text }, "*");
  try {
    return await answer(own, PATIENCE, (data) => (data as { number?: number }).number === number);
  } catch {
    // It may never end. With the frame its work ends, too.
    own.remove();
    frame = null;
    throw new Error("The diagram takes too long to be drawn.");
  }
}

/** What the frame says next that is wanted. */
function answer(own: HTMLIFrameElement, patience: number, isWanted: (data: unknown) => boolean): Promise<Drawn> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => end(() => reject(new Error("no answer"))), patience);
    const hear = (event: MessageEvent) => {
      if (event.source === own.contentWindow && isWanted(event.data)) end(() => resolve(event.data));
    };
    const end = (act: () => void) => {
      clearTimeout(timer);
      removeEventListener("message", hear);
      act();
    };
    addEventListener("message", hear);
  });
}

async function begin(): Promise<HTMLIFrameElement> {
  const own = document.createElement("iframe");
  own.setAttribute("sandbox", "allow-scripts");
  own.className = "drawing";
  own.tabIndex = -1;
  own.setAttribute("aria-hidden", "true");
  own.src = "/mermaid.html";
  const begun = answer(own, LOADING, (data) => data === "ready");
  document.body.append(own);
  try {
    await begun;
  } catch {
    own.remove();
    throw new Error("What draws diagrams could not be loaded.");
  }
  return own;
}
