// QR codes.

/** Modules of the light edge that a camera needs. */
const EDGE = 4;

/** A QR code of the rows that the gateway makes: `1` is dark. */
export function Code({ rows, label }: { rows: string[]; label: string }) {
  const size = rows.length + 2 * EDGE;
  const dark = rows.flatMap((row, y) => [...row.matchAll(/1+/g)].map((run) => `M${run.index + EDGE} ${y + EDGE}h${run[0].length}v1h-${run[0].length}z`));
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={dark.join("")} />
    </svg>
  );
}
