// Formulas in answers, as MathML. It is loaded when an answer has some.

import temml from "temml";

/** Longest formula that is drawn, in characters. */
const LONGEST = 5_000;
/** Longest formula within a text that needs no room to scroll, in characters. */
const SHORT = 30;
const MATHML = "http://www.w3.org/1998/Math/MathML";

/** Draws the formulas in `place`. One that cannot be read stays as it was written. */
export function showFormulas(place: Element): void {
  for (const code of place.querySelectorAll("code.language-math")) {
    const text = code.textContent ?? "";
    if (text.length > LONGEST) continue;
    const isBlock = code.parentElement?.tagName === "PRE";
    const drawn = document.createElement("span");
    try {
      temml.render(text, drawn, { displayMode: isBlock, throwOnError: true, trust: false, maxExpand: 1_000, maxSize: [20, 40] });
    } catch {
      continue;
    }
    const formula = drawn.firstElementChild;
    if (drawn.childElementCount !== 1 || !formula || !isPlain(formula)) continue;
    // What was written may be what one wants to read.
    formula.setAttribute("title", text.trim());
    const block = isBlock && code.closest(".code-block");
    if (!block && text.length <= SHORT) {
      code.replaceWith(formula);
      continue;
    }
    // It scrolls by itself, also with the keyboard.
    drawn.className = block ? "scroll formula formula-block" : "scroll formula";
    drawn.tabIndex = 0;
    drawn.setAttribute("role", "group");
    drawn.setAttribute("aria-label", "formula");
    (block || code).replaceWith(drawn);
  }
}

/** Whether there is nothing but formulas in an element, which act and lead nowhere. */
function isPlain(element: Element): boolean {
  const isSafe = (name: string) => !/^(?:on|xlink)|^(?:href|src|actiontype|id)$/.test(name);
  return element.namespaceURI === MATHML && element.getAttributeNames().every(isSafe) && [...element.children].every(isPlain);
}
