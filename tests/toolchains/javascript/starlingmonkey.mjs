// Makes a component with the StarlingMonkey backend: node starlingmonkey.mjs SOURCE WIT WORLD OUT
// Through the API, because `jco componentize` does not find the WIT with this backend.
import { componentize } from '@bytecodealliance/componentize-js';
import { readFile, writeFile } from 'node:fs/promises';

const [source, witPath, worldName, out] = process.argv.slice(2);
const { component } = await componentize(await readFile(source, 'utf8'), {
  sourceName: 'words.js',
  witPath,
  worldName,
  disableFeatures: ['random', 'stdio', 'clocks', 'http', 'fetch-event'],
});
await writeFile(out, component);
