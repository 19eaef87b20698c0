// Builds the page into the server crate's folder, from where it is embedded into the binary.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment" }, jsxInject: "import { h, Fragment } from \"preact\"" },
  build: {
    // The folder also holds the committed placeholder page.
    outDir: "../crates/handraise-server/page",
    emptyOutDir: false,
    assetsDir: "assets",
    // Nothing as a data: address, which the page's content security policy refuses (S41).
    assetsInlineLimit: 0,
    modulePreload: false,
    target: "es2023",
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    // A word that is said once need not have a name in the script.
    rolldownOptions: { optimization: { inlineConst: { mode: "all", pass: 3 } } },
    reportCompressedSize: false,
  },
});
