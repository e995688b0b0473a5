// What models have used, over time and by who used it.

import { useMemo, useState } from "preact/hooks";
import { Chart, COLOURS, type Series } from "./chart";
import { Choice, Page, type PageProps, State, Table, useLoad } from "./common";
import { count, money, visible } from "./text";

const EVERY = 30_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface Used {
  calls: number;
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  cost: number;
  unpricedCalls: number;
}

interface UsedRow extends Used {
  name: string;
}

interface Answer {
  from: number;
  to: number;
  bucket: "hour" | "day";
  buckets: { start: number; rows: UsedRow[] }[];
  rows: UsedRow[];
  total: Used;
}

const RANGES = [
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["12m", "1 year"],
] as const;
type Range = (typeof RANGES)[number][0];
const LENGTHS: Record<Range, number> = { "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY, "12m": 365 * DAY };

const GROUPS = [
  ["model", "Model"],
  ["agent", "Agent"],
  ["channel", "Channel"],
  ["session", "Session"],
] as const;
type Group = (typeof GROUPS)[number][0];

const MEASURES = [
  ["cost", "Cost"],
  ["tokens", "Tokens"],
  ["calls", "Calls"],
] as const;
type Measure = (typeof MEASURES)[number][0];

/** A session by its name, where it is one of the terminal and this page. */
function shortName(key: string): string {
  const [, agent, channel, peer] = key.match(/^agent:([^:]+):channel:([^:]+):account:[^:]+:peer:[^:]+:(.+)$/) ?? [];
  if (!peer) return key;
  return [agent === "main" ? "" : agent, channel === "cli" ? "" : channel, peer].filter(Boolean).join(" · ");
}

const read = (used: Used) => used.input + used.cacheRead + used.cacheWrite;
const MEASURED: Record<Measure, { of: (used: Used) => number; format: (number: number) => string }> = {
  cost: { of: (used) => used.cost, format: money },
  tokens: { of: (used) => read(used) + used.output, format: count },
  calls: { of: (used) => used.calls, format: count },
};

const hours = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
// The days of the gateway are those of UTC.
const days = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });

/** The bars: the names that matter most, the others together. */
function bars(answer: Answer, measure: Measure): { labels: string[]; series: Series[] } {
  const { of } = MEASURED[measure];
  const step = answer.bucket === "hour" ? HOUR : DAY;
  const starts: number[] = [];
  for (let start = answer.from; start < answer.to; start += step) starts.push(start);
  const names = [...answer.rows].sort((a, b) => of(b) - of(a)).map((row) => row.name);
  const own = names.length > COLOURS ? names.slice(0, COLOURS - 1) : names;
  const by = new Map(answer.buckets.map((bucket) => [bucket.start, bucket.rows]));
  const sum = (is: (name: string) => boolean) =>
    starts.map((start) => (by.get(start) ?? []).filter((row) => is(row.name)).reduce((total, row) => total + of(row), 0));
  const series = own.map((name) => ({ name: visible(shortName(name)), values: sum((one) => one === name) }));
  if (names.length > own.length) series.push({ name: `${names.length - own.length} others`, values: sum((one) => !own.includes(one)) });
  const format = answer.bucket === "hour" ? hours : days;
  return { labels: starts.map((start) => format.format(start)), series };
}

function Tile({ name, value, note }: { name: string; value: string; note?: string }) {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>
        <b>{value}</b>
        {note && <span class="muted">{note}</span>}
      </dd>
    </div>
  );
}

/** What is known of the cost. */
function cost(used: Used): string {
  return used.unpricedCalls > 0 && used.unpricedCalls === used.calls ? "unknown" : money(used.cost);
}

function Tiles({ total }: { total: Used }) {
  const input = read(total);
  const cached = input > 0 ? Math.round((100 * total.cacheRead) / input) : 0;
  const unpriced = total.unpricedCalls > 0 ? `without ${count(total.unpricedCalls)} calls of unknown price` : undefined;
  return (
    <dl class="tiles">
      <Tile name="Cost" value={cost(total)} note={unpriced} />
      <Tile name="Model calls" value={count(total.calls)} />
      <Tile name="Input tokens" value={count(input)} note={`${cached} % from the cache`} />
      <Tile name="Output tokens" value={count(total.output)} />
    </dl>
  );
}

export function UsagePage({ phase, onOpenSession }: PageProps) {
  const [range, setRange] = useState<Range>("7d");
  const [group, setGroup] = useState<Group>("model");
  const [measure, setMeasure] = useState<Measure>("cost");
  const bucket = range === "24h" ? "hour" : "day";
  // The hour or day in which the time begins counts as a whole, so one less is asked for.
  const step = bucket === "hour" ? HOUR : DAY;
  const from = Math.floor(Date.now() / step) * step - LENGTHS[range] + step;
  const loaded = useLoad<Answer>(`/api/usage?from=${from}&group=${group}&bucket=${bucket}`, phase, EVERY);
  const answer = loaded.data;
  const shown = useMemo(() => answer && bars(answer, measure), [answer, measure]);
  const groupName = GROUPS.find(([name]) => name === group)?.[1] ?? "";
  const measureName = MEASURES.find(([name]) => name === measure)?.[1] ?? "";
  const { of, format } = MEASURED[measure];
  const isEmpty = answer?.rows.length === 0;
  return (
    <Page name="Usage">
      <div class="controls">
        <Choice label="Time" value={range} values={RANGES} onChange={setRange} />
        <Choice label="By" value={group} values={GROUPS} onChange={setGroup} />
        <Choice label="Show" value={measure} values={MEASURES} onChange={setMeasure} />
      </div>
      <State loaded={loaded} isEmpty={isEmpty}>
        <h2>Nothing was used in this time</h2>
        <p class="muted">Send a message; what its answer uses shows here.</p>
      </State>
      {answer && shown && !isEmpty && (
        <>
          <Tiles total={answer.total} />
          <Chart title={`${measureName} by ${groupName.toLowerCase()}`} labels={shown.labels} series={shown.series} format={format} />
          <Table name="Sums" head={[groupName, "Calls", "Input", "From cache", "Output", "Cost"]}>
            {answer.rows.map((row) => (
              <tr key={row.name}>
                <th scope="row">
                  {group === "session" && row.name.startsWith("agent:") ? (
                    <button type="button" class="link" onClick={() => onOpenSession(row.name)}>
                      {visible(shortName(row.name))}
                    </button>
                  ) : (
                    visible(row.name)
                  )}
                </th>
                <td>{count(row.calls)}</td>
                <td>{count(read(row))}</td>
                <td>{count(row.cacheRead)}</td>
                <td>{count(row.output)}</td>
                <td>{cost(row)}</td>
              </tr>
            ))}
          </Table>
          <details class="more">
            <summary>{measureName} over time, as a table</summary>
            <Table name={`${measureName} over time`} head={[bucket === "hour" ? "Hour" : "Day (UTC)", ...shown.series.map((one) => one.name), "Together"]}>
              {shown.labels.map((label, index) => {
                const values = shown.series.map((one) => one.values[index] ?? 0);
                const sum = values.reduce((total, value) => total + value, 0);
                if (sum === 0) return null;
                return (
                  <tr key={`${label}-${index}`}>
                    <th scope="row">{label}</th>
                    {values.map((value, number) => (
                      <td key={number}>{format(value)}</td>
                    ))}
                    <td>{format(sum)}</td>
                  </tr>
                );
              })}
            </Table>
          </details>
          <p class="muted small">
            {bucket === "day" ? "Days are those of UTC. " : ""}
            Counted by this gateway; what <code>myclaw run</code> and the terminal chat use is not. {of(answer.total) === 0 && measure === "cost" ? "The models used have no price." : ""}
          </p>
        </>
      )}
    </Page>
  );
}
