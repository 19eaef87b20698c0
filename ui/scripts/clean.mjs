// Removes what an earlier build left in the server crate's page folder; the committed placeholder stays.
import { rmSync } from "node:fs";

const page = new URL("../../crates/handraise-server/page/", import.meta.url);
for (const folder of ["assets/", "icons/"]) rmSync(new URL(folder, page), { recursive: true, force: true });
rmSync(new URL("index.html", page), { force: true });
