// Builds one file of HTML with everything in it. The browser needs no request to show it, not even from a disk.
import { defineConfig, type Plugin } from "vite";

function inOneFile(): Plugin {
  return {
    name: "in-one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("no index.html");
      let html = String(page.source);
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") {
          html = html.replace(/<script type="module"[^>]*><\/script>\s*/, "");
          // The replacement is a function, because `$&` in the code must not act as a pattern.
          const code = part.code.replace(/<\/script/g, "<\\/script");
          html = html.replace("</body>", () => `<script type="module">${code}</script>\n</body>`);
        } else if (name.endsWith(".css")) {
          const style = String(part.source);
          html = html.replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`);
        } else continue;
        delete bundle[name];
      }
      delete bundle["index.html"];
      this.emitFile({ type: "asset", fileName: "page.html", source: html });
    },
  };
}

export default defineConfig({
  base: "./",
  build: { target: "es2022", cssCodeSplit: false, modulePreload: false, assetsInlineLimit: 1 << 20, emptyOutDir: true },
  plugins: [inOneFile()],
});
