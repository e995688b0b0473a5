// Commands: those of this page, and those that the owner has written.

import type { Command } from "./protocol";
import { visible } from "./text";

/** What the page does, by itself or through the gateway. */
export const OWN_COMMANDS: Command[] = [
  { name: "/new", description: "begins a new session; this one is kept" },
  { name: "/stop", description: "stops what the agent does" },
  { name: "/status", description: "shows whether it works" },
  { name: "/todos", description: "shows the steps of the agent's plan" },
  { name: "/diff", description: "shows what its tools have changed" },
  { name: "/goal", description: "works until a condition holds, or until !COMMAND succeeds; /goal resume, /goal stop" },
  { name: "/compact", description: "replaces the older messages with a summary" },
  { name: "/undo", description: "undoes the file changes of the last turn" },
  { name: "/redo", description: "makes them again" },
  { name: "/rewind", description: "lists your messages, or goes back to before one, in files too" },
  { name: "/btw", description: "asks aside; the answer is not kept" },
  { name: "/usage", description: "shows tokens and cost" },
  { name: "/context", description: "shows what fills the context window" },
  { name: "/memory", description: "shows what is remembered; search WORDS, why ID, add TEXT, edit ID TEXT, forget ID" },
  { name: "/agents", description: "shows the agents that are files" },
  { name: "/help", description: "shows this" },
];
/** Those that the gateway obeys, as for other clients. */
export const OF_GATEWAY = /^\/(goal|compact|undo|redo|rewind|btw|usage|cost|context|agents|memory|model|thinking)(\s|$)/;
export const HELP = OWN_COMMANDS.map(({ name, description }) => `${name} ${description}.`).join(" ");
const MOST_SHOWN = 8;
/** Those of the gateway that the page does not list: it has them as choices too. */
const UNLISTED = ["/cost", "/model", "/thinking"];

/** How many letters differ between two words. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [number, letter] of [...one].entries()) {
    const next = [number + 1];
    for (let at = 0; at < other.length; at++) {
      const changed = (row[at] ?? 0) + Number(letter !== other[at]);
      next.push(Math.min(changed, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}

/** What is said of a line with a command that nobody knows; undefined if it begins with a path. */
export function unknown(line: string, written: Command[]): string | undefined {
  const word = line.split(/\s/, 1)[0] ?? "";
  if (word.includes("/", 1)) return undefined;
  const names = [...[...OWN_COMMANDS, ...written].map(({ name }) => name), ...UNLISTED];
  const near = names
    .map((name) => ({ name, far: distance(word.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, far }) => far <= Math.ceil(name.length / 3) || name.startsWith(word))
    .sort((one, other) => one.far - other.far)[0];
  const meant = near ? `; did you mean ${near.name}?` : ".";
  return `There is no command ${word}${meant} /help lists the commands; a space before the slash makes it a message.`;
}

/** The commands that a text may become, the ones that begin with it first. */
export function offered(text: string, written: Command[]): Command[] {
  if (!/^\/\S*$/.test(text)) return [];
  const all = [...OWN_COMMANDS, ...written.filter(({ name }) => !OWN_COMMANDS.some((own) => own.name === name))];
  const wanted = text.slice(1).toLowerCase();
  const place = ({ name }: Command) => name.toLowerCase().indexOf(wanted, 1);
  const found = all.filter((one) => place(one) > 0).sort((one, other) => Number(place(one) > 1) - Number(place(other) > 1));
  return found.slice(0, MOST_SHOWN);
}

interface Props {
  id: string;
  list: Command[];
  /** The number of the chosen one. */
  chosen: number;
  onChoose: (command: Command) => void;
}

export function Offered({ id, list, chosen, onChoose }: Props) {
  return (
    <ul class="offered" id={id} role="listbox" aria-label="Commands">
      {list.map((command, number) => (
        <li
          key={command.name}
          id={`${id}-${number}`}
          role="option"
          aria-selected={number === chosen}
          // The text keeps the focus.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onChoose(command)}
        >
          <code>{visible(command.name)}</code> <span class="muted">{visible(command.description ?? "")}</span>
        </li>
      ))}
    </ul>
  );
}
