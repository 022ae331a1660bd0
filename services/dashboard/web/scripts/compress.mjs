// Writes .br and .gz files next to the files of a build, where they are smaller: node compress.mjs FOLDER.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const folder = process.argv[2];
for (const name of readdirSync(folder, { recursive: true })) {
  if (!/\.(js|css|html|svg|json)$/.test(name)) continue;
  const bytes = readFileSync(join(folder, name));
  const coded = {
    '.br': brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
    '.gz': gzipSync(bytes, { level: 9 }),
  };
  for (const [end, out] of Object.entries(coded)) if (out.length < bytes.length) writeFileSync(join(folder, name + end), out);
}
