import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// The script of the frame that draws diagrams: one file, which loads nothing more.
export default defineConfig({
  publicDir: false,
  define: { "import.meta": {} },
  resolve: {
    alias: [{ find: /^(?:elkjs\/.*|elkjs|katex)$/, replacement: fileURLToPath(new URL("src/absent.ts", import.meta.url)) }],
  },
  build: {
    target: "es2022",
    emptyOutDir: false,
    modulePreload: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 5_000,
    license: { fileName: "licenses-of-mermaid.md" },
    rolldownOptions: {
      input: "src/mermaid.ts",
      output: { format: "iife", entryFileNames: "mermaid.js", codeSplitting: false },
    },
  },
});
