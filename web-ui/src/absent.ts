// In the place of packages that would double the size of `mermaid.js`: another way to lay out graphs, and formulas in labels.

export default function absent(): never {
  throw new Error("this kind of diagram is not drawn here");
}
