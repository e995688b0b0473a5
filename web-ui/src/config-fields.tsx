// The inputs of the config form, made from the schema. Everything of the schema and of the file is shown as text.

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { GONE, isMap, type Json, type Path, pathText, resolved, type Schema, valueAt } from "./config-values";
import { Icon } from "./icons";
import { visible } from "./text";

export interface Issue {
  path: Path;
  message: string;
  help?: string;
}

interface Form {
  root: Schema;
  draft: Json;
  masked: string;
  issues: Issue[];
  set: (path: Path, value: Json) => void;
  removeEntry: (path: Path) => void;
}

export const FormOf = createContext<Form | null>(null);

function useForm(): Form {
  const form = useContext(FormOf);
  if (!form) throw new Error("a field outside of its form");
  return form;
}

interface FieldProps {
  schema: Schema;
  path: Path;
  /** The same as it will be in the file, where removed entries are gone. */
  at: Path;
  name: string;
}

const same = (a: Path, b: Path) => a.length === b.length && a.every((step, number) => step === b[number]);

/** Text with `code` between backticks. */
export function Described({ text }: { text?: string }) {
  if (!text) return null;
  return <>{text.split("`").map((part, number) => (number % 2 ? <code key={number}>{visible(part)}</code> : visible(part.replace(/\n/g, " "))))}</>;
}

/** The values of a choice, each with its description. */
function options(schema: Schema): [string, string | undefined][] | null {
  if (schema.enum) return schema.enum.map((one) => [one, undefined]);
  if (schema.oneOf?.every((one) => typeof one.const === "string")) return schema.oneOf.map((one) => [one.const as string, one.description]);
  return null;
}

const kindOf = (schema: Schema): string => (options(schema) ? "choice" : (schema.type ?? "any"));

/** Whether a value is of the kind of a schema. */
function fits(schema: Schema, value: Json): boolean {
  const known = options(schema);
  if (known) return known.some(([one]) => one === value);
  if (Array.isArray(value)) return schema.type === "array";
  if (isMap(value)) return schema.type === "object";
  return schema.type === (typeof value === "number" ? (schema.type === "integer" ? "integer" : "number") : typeof value);
}

const KINDS: Record<string, string> = { choice: "a word", string: "text", integer: "a number", number: "a number", boolean: "on or off", array: "a list", object: "details" };

/** What a new value of a kind begins with. */
function first(schema: Schema): Json {
  const known = options(schema);
  if (known) return known[0]?.[0];
  return { array: [], object: {}, boolean: false, integer: schema.minimum ?? 0, number: schema.minimum ?? 0 }[schema.type ?? ""] ?? "";
}

/** One value of the config, whatever it is. */
export function Field(props: FieldProps) {
  const form = useForm();
  const schema = resolved(props.schema, form.root);
  if (schema.anyOf) return <Alternatives {...props} schema={schema} />;
  if (schema.type === "array") return <List {...props} schema={schema} />;
  if (schema.type === "object") return <Group {...props} schema={schema} />;
  return <Scalar {...props} schema={schema} />;
}

function Alternatives({ schema, path, at, name }: FieldProps) {
  const form = useForm();
  const value = valueAt(form.draft, path);
  const kinds = (schema.anyOf ?? []).map((one) => resolved(one, form.root));
  const found = kinds.findIndex((one) => fits(one, value));
  const [chosen, setChosen] = useState(0);
  const number = value === undefined ? chosen : Math.max(found, 0);
  const kind = kinds[number];
  if (!kind) return null;
  return (
    <div class="alternatives">
      <Field schema={{ ...kind, description: schema.description ?? kind.description, default: schema.default }} path={path} at={at} name={name} />
      <label class="kind">
        <span class="unseen">Kind of {name}</span>
        <select
          value={number}
          onChange={(event) => {
            const next = Number(event.currentTarget.value);
            setChosen(next);
            const one = kinds[next];
            if (value !== undefined && one) form.set(path, first(one));
          }}
        >
          {kinds.map((one, at) => (
            <option key={at} value={at}>
              {KINDS[kindOf(one)] ?? kindOf(one)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Scalar({ schema, path, at, name }: FieldProps) {
  const form = useForm();
  const value = valueAt(form.draft, path);
  const id = `f-${pathText(path)}`;
  const isSet = value !== undefined;
  const set = (next: Json) => form.set(path, next);
  const usual = schema.default === undefined ? "not set" : `${typeof schema.default === "boolean" ? (schema.default ? "on" : "off") : shownValue(schema.default)} (default)`;
  const issues = form.issues.filter((issue) => same(issue.path, at));
  const range = outOfRange(schema, value);
  const known = options(schema);
  const common = { id, "aria-describedby": `${id}-text`, "aria-invalid": issues.length > 0 || range !== "" };
  let input;
  if (known) {
    input = (
      <select {...common} value={isSet ? String(value) : ""} onChange={(event) => set(event.currentTarget.value || undefined)}>
        <option value="">{usual}</option>
        {known.map(([one]) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
        {isSet && !known.some(([one]) => one === value) && <option value={String(value)}>{visible(String(value))}</option>}
      </select>
    );
  } else if (schema.type === "boolean") {
    const read = (text: string) => (text === "" ? undefined : text === "true");
    input = (
      <select {...common} value={isSet ? String(value) : ""} onChange={(event) => set(read(event.currentTarget.value))}>
        <option value="">{usual}</option>
        <option value="true">on</option>
        <option value="false">off</option>
      </select>
    );
  } else if (schema.type === "integer" || schema.type === "number") {
    const read = (text: string) => (text.trim() === "" ? undefined : Number.isFinite(Number(text)) ? Number(text) : text);
    input = <input {...common} inputMode="decimal" placeholder={usual} value={isSet ? String(value) : ""} onInput={(event) => set(read(event.currentTarget.value))} />;
  } else if (schema.writeOnly) {
    input = <Secret common={common} value={value} set={set} masked={form.masked} />;
  } else if (value === form.masked) {
    input = <Secret common={common} value={value} set={set} masked={form.masked} />;
  } else {
    const text = isSet ? shownValue(value) : "";
    const onInput = (event: { currentTarget: { value: string } }) => set(event.currentTarget.value === "" ? undefined : event.currentTarget.value);
    const isLong = text.length > 90 || text.includes("\n");
    input = isLong ? (
      <textarea {...common} rows={4} value={text} onInput={onInput} />
    ) : (
      <input {...common} placeholder={usual} spellcheck={false} autocomplete="off" value={text} onInput={onInput} />
    );
  }
  const described = known?.find(([one]) => one === value)?.[1];
  return (
    <div class={`setting ${isSet ? "is-set" : ""}`}>
      <label for={id}>{visible(name)}</label>
      <div class="control">
        {input}
        {isSet && typeof path[path.length - 1] === "string" && (
          <button type="button" class="icon-button" aria-label={`Unset ${name}`} title="Unset" onClick={() => set(undefined)}>
            <Icon name="cross" />
          </button>
        )}
      </div>
      <p id={`${id}-text`} class="muted small">
        <Described text={schema.description} />
        {described && (
          <>
            {" "}
            <b>{visible(String(value))}</b>: <Described text={described} />
          </>
        )}
      </p>
      {range && <p class="error">{range}</p>}
      <Issues issues={issues} />
    </div>
  );
}

function outOfRange({ type, minimum, maximum }: Schema, value: Json): string {
  if ((type !== "integer" && type !== "number") || value === undefined) return "";
  const range = [minimum === undefined ? "" : `at least ${minimum.toLocaleString("en")}`, maximum === undefined || maximum > Number.MAX_SAFE_INTEGER ? "" : `at most ${maximum.toLocaleString("en")}`].filter(Boolean).join(" and ");
  const isNumber = typeof value === "number" && (type === "number" || Number.isInteger(value));
  if (!isNumber) return `A ${type === "integer" ? "whole " : ""}number${range ? `, ${range}` : ""}.`;
  return value < (minimum ?? value) || value > (maximum ?? value) ? `${range[0]?.toUpperCase()}${range.slice(1)}.` : "";
}

const shownValue = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

/** A secret is never shown; what was typed replaces it. A reference to a variable is no secret. */
function Secret({ common, value, set, masked }: { common: object; value: Json; set: (value: Json) => void; masked: string }) {
  const isKept = value === masked;
  const isReference = typeof value === "string" && value.startsWith("$");
  const shared = {
    ...common,
    autocomplete: "off",
    spellcheck: false,
    placeholder: isKept ? "kept; type to replace it" : "the secret, or ${NAME}",
    value: isKept || value === undefined ? "" : String(value),
    onInput: (event: { currentTarget: { value: string } }) => set(event.currentTarget.value === "" ? undefined : event.currentTarget.value),
  };
  return isReference ? <input {...shared} type="text" /> : <input {...shared} type="password" />;
}

export function Issues({ issues }: { issues: Issue[] }) {
  return (
    <>
      {issues.map((issue) => (
        <p key={issue.message} class="error" role="alert">
          {visible(issue.message)}
          {issue.help ? `; ${visible(issue.help)}` : ""}
        </p>
      ))}
    </>
  );
}

function List({ schema, path, at, name }: FieldProps) {
  const form = useForm();
  const found = valueAt(form.draft, path);
  const entries: Json[] = Array.isArray(found) ? found : [];
  const items = resolved(schema.items ?? {}, form.root);
  let number = 0;
  return (
    <fieldset class="group">
      <legend>{visible(name)}</legend>
      <p class="muted small">
        <Described text={schema.description} />
      </p>
      <Issues issues={form.issues.filter((issue) => same(issue.path, at))} />
      {entries.map((entry, position) => {
        if (entry === GONE) return null;
        const here = number++;
        const title = `${name} ${here + 1}`;
        const label = isMap(entry) && typeof (entry.id ?? entry.name) === "string" ? `${title}: ${entry.id ?? entry.name}` : title;
        return (
          <div key={position} class="entry">
            <Field schema={items} path={[...path, position]} at={[...at, here]} name={label} />
            <button type="button" class="icon-button" aria-label={`Remove ${title}`} title="Remove" onClick={() => form.removeEntry([...path, position])}>
              <Icon name="trash" />
            </button>
          </div>
        );
      })}
      <div class="buttons">
        <button type="button" class="act" onClick={() => form.set([...path, entries.length], first(items.anyOf?.[0] ? resolved(items.anyOf[0], form.root) : items))}>
          <Icon name="plus" />
          Add to {visible(name)}
        </button>
        {found !== undefined && number === 0 && (
          <button type="button" class="act" onClick={() => form.set(path, undefined)}>
            Unset {visible(name)}
          </button>
        )}
      </div>
    </fieldset>
  );
}

/** The entries of an object: those of the schema, and those that the owner named. */
function Group({ schema, path, at, name }: FieldProps) {
  const form = useForm();
  const [key, setKey] = useState("");
  const value = valueAt(form.draft, path);
  const own = schema.properties ?? {};
  const more = typeof schema.additionalProperties === "object" ? schema.additionalProperties : null;
  const others = isMap(value) ? Object.keys(value).filter((one) => !Object.hasOwn(own, one)) : [];
  const isSet = value !== undefined;
  const hasIssue = form.issues.some((issue) => at.every((step, number) => issue.path[number] === step));
  const inside = (
    <>
      <Issues issues={form.issues.filter((issue) => same(issue.path, at))} />
      {Object.entries(own)
        .filter(([one]) => one !== "$schema")
        .map(([one, below]) => (
          <Field key={one} schema={below} path={[...path, one]} at={[...at, one]} name={one} />
        ))}
      {others.map((one) => (
        <div key={one} class="entry">
          <Field schema={more ?? {}} path={[...path, one]} at={[...at, one]} name={one} />
          <button type="button" class="icon-button" aria-label={`Remove ${one}`} title="Remove" onClick={() => form.set([...path, one], undefined)}>
            <Icon name="trash" />
          </button>
        </div>
      ))}
      {more && (
        <div class="control new-key">
          <input aria-label={`New name in ${name}`} placeholder="name" value={key} spellcheck={false} onInput={(event) => setKey(event.currentTarget.value)} />
          <button
            type="button"
            class="act"
            disabled={!key.trim() || others.includes(key.trim())}
            onClick={() => {
              form.set([...path, key.trim()], first(resolved(more, form.root)));
              setKey("");
            }}
          >
            <Icon name="plus" />
            Add
          </button>
        </div>
      )}
    </>
  );
  if (path.length === 1) return <div class="settings">{inside}</div>;
  return (
    <details class={`group ${isSet ? "is-set" : ""}`} open={hasIssue || (isSet && typeof path[path.length - 1] === "number") || undefined}>
      <summary>
        <b>{visible(name)}</b> <span class="muted small">{isSet ? "" : "not set"}</span>
      </summary>
      <p class="muted small">
        <Described text={schema.description} />
      </p>
      {inside}
      {isSet && typeof path[path.length - 1] === "string" && (
        <div class="buttons">
          <button type="button" class="act" onClick={() => form.set(path, undefined)}>
            Unset {visible(name)}
          </button>
        </div>
      )}
    </details>
  );
}
