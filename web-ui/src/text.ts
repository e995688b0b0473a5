// Text from models and tools on its way to the page.

import DOMPurify from "dompurify";
import { Marked } from "marked";
import { formulas } from "./formulas";

const marked = new Marked({ gfm: true, breaks: true }, formulas);

/** Addresses that a link may have. Everything else, such as `javascript:`, is removed. */
const SAFE_LINK = /^(?:https?:|mailto:)/i;
const SAFE_IMAGE = /^(?:data:image\/(?:png|jpeg|gif|webp);base64,|blob:)/i;

const PURIFY = {
  ALLOWED_TAGS: [
    "a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "input",
    "kbd", "li", "ol", "p", "pre", "s", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "src", "alt", "title", "align", "start", "type", "checked", "disabled", "class"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true as const,
};

/** Markdown as nodes that hold no script, load nothing, and name no address but in links. */
export function markdown(text: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(marked.parse(text, { async: false }), PURIFY);
  for (const link of fragment.querySelectorAll("a")) {
    if (!SAFE_LINK.test(link.getAttribute("href") ?? "")) {
      link.removeAttribute("href");
      continue;
    }
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    link.title = link.getAttribute("href") ?? "";
  }
  for (const image of fragment.querySelectorAll("img")) {
    const source = image.getAttribute("src") ?? "";
    if (SAFE_IMAGE.test(source)) continue;
    // A picture elsewhere would tell its server that, and when, the answer was read.
    const label = `[picture: ${image.alt || source}]`;
    if (SAFE_LINK.test(source)) {
      const link = document.createElement("a");
      link.href = source;
      link.title = source;
      link.target = "_blank";
      link.rel = "noopener noreferrer";
      link.textContent = label;
      image.replaceWith(link);
    } else {
      image.replaceWith(label);
    }
  }
  for (const box of fragment.querySelectorAll("input")) {
    if (box.type !== "checkbox") {
      box.remove();
      continue;
    }
    box.disabled = true;
    box.setAttribute("aria-label", box.checked ? "done" : "to do");
  }
  for (const one of fragment.querySelectorAll("[class]")) {
    const language = one.tagName === "CODE" && /^language-[\w+#-]{1,30}$/.test(one.className);
    if (!language) one.removeAttribute("class");
  }
  for (const wide of fragment.querySelectorAll("pre, table")) {
    // It scrolls by itself, also with the keyboard.
    const box = document.createElement("div");
    const isCode = wide.tagName === "PRE";
    box.className = "scroll";
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", isCode ? "code" : "table");
    if (isCode) {
      const around = document.createElement("div");
      around.className = "code-block";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy-code";
      button.textContent = "Copy";
      wide.replaceWith(around);
      around.append(box, button);
    } else {
      wide.replaceWith(box);
    }
    box.append(wide);
  }
  return fragment;
}

/** Shows controls, and characters that hide or reorder text, as escapes, as `is_deceptive` of the program does. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ue000-\uf8ff\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\u{f0000}-\u{10ffff}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** A value as text: strings as they are, others as JSON. */
export function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1_000)} s`;
}

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** The time today, else the day. */
export function moment(milliseconds: number): string {
  if (!milliseconds) return "";
  const date = new Date(milliseconds);
  return date.toDateString() === new Date().toDateString() ? time.format(date) : day.format(date);
}

export function fullMoment(milliseconds: number): string {
  return milliseconds ? full.format(new Date(milliseconds)) : "";
}

export function count(number: number): string {
  return new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 }).format(number);
}

const dollars = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: 2 });
const cents = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: 4 });

/** Dollars; small sums with more digits. */
export function money(amount: number): string {
  return Math.abs(amount) < 1 ? cents.format(amount) : dollars.format(amount);
}

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** How far away a moment is, such as "in 5 minutes". */
export function fromNow(milliseconds: number): string {
  const distance = milliseconds - Date.now();
  const [length, unit] = STEPS.find(([step]) => Math.abs(distance) >= step) ?? [1_000, "second"];
  return relative.format(Math.round(distance / length), unit);
}
