import { defineConfig } from "vite";

// Fixed names: the gateway embeds the files and answers with a hash of each, so names need none.
export default defineConfig({
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // The licences of the packages in app.js, which must come with every copy.
    license: { fileName: "licenses.md" },
    rolldownOptions: {
      output: {
        entryFileNames: "app.js",
        assetFileNames: "app[extname]",
        codeSplitting: false,
      },
    },
  },
});
