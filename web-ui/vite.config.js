import { defineConfig } from "vite";

// Fixed names: the gateway embeds the files and answers with a hash of each, so names need none.
export default defineConfig({
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // The licences of the packages in the files, which must come with every copy.
    license: { fileName: "licenses.md" },
    rolldownOptions: {
      output: {
        // What the first message needs. The other files load when they are used: one for each `import()`.
        entryFileNames: "app.js",
        chunkFileNames: "[name].js",
        assetFileNames: "app[extname]",
        // A file of another version then fails to load. With short names it could get another function than it means.
        minifyInternalExports: false,
      },
    },
  },
});
