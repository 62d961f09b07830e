// Validates an AsyncAPI document by the official parser: a line for each complaint, then counts.

import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";

const NEWER_VERSION_EXISTS = "asyncapi-latest-version";

const { document, diagnostics } = await new Parser().parse(readFileSync(process.argv[2], "utf8"));
const complaints = diagnostics.filter((each) => each.code !== NEWER_VERSION_EXISTS);
for (const each of complaints) console.log(`${each.code}: ${each.path.join(".")}: ${each.message}`);
if (!document || complaints.length > 0) process.exit(1);
console.log(JSON.stringify({ channels: document.channels().length, operations: document.operations().length }));
