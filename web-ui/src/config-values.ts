// The values of the config form: what the file has, what was changed, and the list of changes that the gateway takes.

export type Step = string | number;
export type Path = readonly Step[];
// biome-ignore lint: any value of JSON.
export type Json = any;

export interface Schema {
  type?: string;
  $ref?: string;
  description?: string;
  default?: Json;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  required?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: string[];
  const?: string;
  minimum?: number;
  maximum?: number;
  writeOnly?: boolean;
  $defs?: Record<string, Schema>;
}

export interface Change {
  op: "set" | "unset" | "append";
  path: Path;
  value?: Json;
}

/** In the place of an entry that was removed from a list: the others keep their numbers until it is saved. */
export const GONE = Symbol("removed");

export function isMap(value: Json): value is Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A schema with what it refers to. The words beside the reference count more. */
export function resolved(schema: Schema, root: Schema): Schema {
  if (!schema.$ref) return schema;
  const { $ref, ...own } = schema;
  const found = root.$defs?.[$ref.replace("#/$defs/", "")];
  return found ? { ...resolved(found, root), ...own } : own;
}

export function valueAt(value: Json, path: Path): Json {
  return path.reduce((one, step) => (one === null || one === undefined || one === GONE ? undefined : one[step]), value);
}

/** A copy with another value at `path`; `undefined` removes it. Objects and lists on the way are made. */
export function withValue(value: Json, path: Path, next: Json): Json {
  const [step, ...rest] = path;
  if (step === undefined) return next;
  if (typeof step === "number") {
    const list = Array.isArray(value) ? [...value] : [];
    list[step] = rest.length ? withValue(list[step], rest, next) : next;
    return list;
  }
  const map = isMap(value) ? { ...value } : {};
  const below = rest.length ? withValue(map[step], rest, next) : next;
  if (below === undefined) delete map[step];
  else map[step] = below;
  return map;
}

/** Removes an entry. One that was added goes away; one of the file is marked. */
export function withoutEntry(value: Json, path: Path, inFile: Json): Json {
  const number = path[path.length - 1] as number;
  const list = path.slice(0, -1);
  const known = valueAt(inFile, list);
  if (Array.isArray(known) && number < known.length) return withValue(value, path, GONE);
  return withValue(value, list, (valueAt(value, list) as Json[]).filter((_, at) => at !== number));
}

/** The value as it will be in the file. */
export function plain(value: Json): Json {
  if (Array.isArray(value)) return value.filter((one) => one !== GONE).map(plain);
  if (isMap(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
  return value;
}

/** The changes from one to the other. Entries are removed last, from the end, so that all numbers are those of the file. */
export function changes(before: Json, after: Json): Change[] {
  const found: Change[] = [];
  const removed: Path[] = [];
  const compare = (old: Json, now: Json, path: Path) => {
    if (old === now) return;
    if (now === GONE) {
      removed.push(path);
    } else if (old === undefined && isMap(now) && Object.keys(now).length > 0) {
      // Key by key, so that each is a line of its own, and fits a file that something else changed.
      compare({}, now, path);
    } else if (isMap(old) && isMap(now)) {
      for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
        if (!(key in now)) found.push({ op: "unset", path: [...path, key] });
        else compare(old[key], now[key], [...path, key]);
      }
    } else if (Array.isArray(old) && Array.isArray(now)) {
      now.forEach((one, number) => {
        if (number < old.length) compare(old[number], one, [...path, number]);
        else found.push({ op: "append", path, value: plain(one) });
      });
    } else if (JSON.stringify(old) !== JSON.stringify(plain(now))) {
      found.push({ op: "set", path, value: plain(now) });
    }
  };
  compare(before, after, []);
  const later = (a: Path, b: Path): number => {
    for (let at = 0; at < Math.max(a.length, b.length); at++) {
      const [x, y] = [a[at], b[at]];
      if (x === y) continue;
      if (x === undefined || y === undefined) return x === undefined ? 1 : -1;
      return typeof x === "number" && typeof y === "number" ? y - x : String(x) < String(y) ? -1 : 1;
    }
    return 0;
  };
  return [...found, ...removed.sort(later).map((path): Change => ({ op: "unset", path }))];
}

/** A path as the program writes it. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    if (!/^[\w$-]+$/.test(step)) return `${text}[${JSON.stringify(step)}]`;
    return text ? `${text}.${step}` : step;
  }, "");
}

/** The changes as lines of a diff, without what is secret. */
export function diffText(before: Json, list: Change[], isSecret: (path: Path) => boolean, masked: string): string {
  const hidden = (value: Json, path: Path): Json => {
    if (Array.isArray(value)) return value.map((one, number) => hidden(one, [...path, number]));
    if (isMap(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, hidden(one, [...path, key])]));
    return typeof value === "string" && !/^\$\{\w+\}$/.test(value) && isSecret(path) ? masked : value;
  };
  const line = (sign: string, path: Path, value: Json) => `${sign} ${pathText(path)}: ${JSON.stringify(hidden(value, path))}`;
  return list
    .flatMap(({ op, path, value }) => {
      if (op === "append") return [line("+", [...path, Number(valueAt(before, path)?.length ?? 0)], value)];
      const old = valueAt(before, path);
      return [...(old === undefined ? [] : [line("-", path, old)]), ...(op === "set" ? [line("+", path, value)] : [])];
    })
    .join("\n");
}
