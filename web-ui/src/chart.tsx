// Stacked bars over time, drawn by uPlot. What they say is also in a table beside them.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

/** Series with a colour of their own. */
export const COLOURS = 8;
const HEIGHT = 260;
/** Room for one label of the horizontal axis, in pixels. */
const LABEL_SPACE = 70;

export interface Series {
  name: string;
  /** One number for each label. */
  values: number[];
}

interface Props {
  title: string;
  labels: string[];
  series: Series[];
  format: (number: number) => string;
}

/** Changes when the colours of the page do. */
function useColours(): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const changed = () => setTurn((number) => number + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    const observer = new MutationObserver(changed);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      system.removeEventListener("change", changed);
      observer.disconnect();
    };
  }, []);
  return turn;
}

function options(props: Props, width: number, onPoint: (index: number | null) => void): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const { labels, series, format } = props;
  const each = Math.max(1, Math.ceil(labels.length / Math.max(2, (width - 60) / LABEL_SPACE)));
  const bars = uPlot.paths.bars?.({ size: [0.72, 42], radius: 0.12 });
  const axis = { stroke: colour("--muted"), font: "12px system-ui, sans-serif", ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    padding: [12, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: () => [-0.6, labels.length - 0.4] },
      y: { range: (_, __, highest) => [0, highest > 0 ? highest * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        grid: { show: false },
        splits: () => labels.map((_, index) => index).filter((index) => index % each === 0),
        values: (_, splits) => splits.map((index) => labels[index] ?? ""),
      },
      { ...axis, size: 62, grid: { stroke: colour("--line"), width: 1 }, values: (_, splits) => splits.map(format) },
    ],
    series: [
      {},
      // The highest sum is drawn first, and the others in front of it.
      ...series.map((_, index) => {
        const fill = colour(`--c${(series.length - 1 - index) % COLOURS}`);
        return { fill, stroke: fill, width: 0, paths: bars, points: { show: false } };
      }),
    ],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

/** The numbers of uPlot: positions, then sums from the last series down to the first. */
function stacked(labels: string[], series: Series[]): uPlot.AlignedData {
  const sums: number[][] = [];
  const sum = labels.map(() => 0);
  for (const one of series) {
    one.values.forEach((value, index) => {
      sum[index] = (sum[index] ?? 0) + value;
    });
    sums.unshift([...sum]);
  }
  return [labels.map((_, index) => index), ...sums];
}

export function Chart(props: Props) {
  const { title, labels, series, format } = props;
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [point, setPoint] = useState<number | null>(null);
  const colours = useColours();
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(box.clientWidth)));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const box = place.current;
    if (!box || width === 0) return;
    const plot = new uPlot(options(props, width, setPoint), stacked(labels, series), box);
    return () => plot.destroy();
  }, [width, colours, labels, series, format]);
  const at = point !== null && labels[point] !== undefined ? point : null;
  return (
    <figure class="chart">
      <div ref={place} class="plot" role="img" aria-label={`${title}, as bars; the table below says the same`} />
      <figcaption>
        <ul class="legend">
          {series.map((one, index) => (
            <li key={one.name}>
              <span class={`swatch swatch-${index % COLOURS}`} aria-hidden="true" />
              <span>{one.name}</span>
              {at !== null && <b>{format(one.values[at] ?? 0)}</b>}
            </li>
          ))}
        </ul>
        <span class="muted">{at === null ? " " : labels[at]}</span>
      </figcaption>
    </figure>
  );
}
