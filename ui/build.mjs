// Builds the dashboard into build/ui (app.js, app.css, index.html), or with `test` its rules' tests, and runs them.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, '../build');
const GZIP_BYTES_MAX = 150_000;

async function page() {
  const folder = join(out, 'ui');
  mkdirSync(folder, { recursive: true });
  const made = await build({
    absWorkingDir: here,
    entryPoints: { app: 'src/main.tsx' },
    outdir: folder,
    write: false,
    bundle: true,
    minify: true,
    charset: 'ascii',
    target: 'es2020',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
  });
  const files = made.outputFiles.map((file) => [file.path, file.contents]);
  files.push([join(folder, 'index.html'), readFileSync(join(here, 'src/index.html'))]);
  let packed = 0;
  for (const [path, contents] of files) {
    packed += gzipSync(contents).length;
    // A file that stays as it was keeps its time: the program is not linked anew for nothing.
    let before = null;
    try { before = readFileSync(path); } catch { /* there is none yet */ }
    if (before === null || !before.equals(Buffer.from(contents))) writeFileSync(path, contents);
  }
  console.error(`dashboard: ${packed} bytes gzipped`);
  if (packed > GZIP_BYTES_MAX) throw new Error(`the bundle is larger than ${GZIP_BYTES_MAX} bytes gzipped`);
}

async function tests() {
  const folder = join(out, 'ui-tests');
  rmSync(folder, { recursive: true, force: true });
  const names = readdirSync(join(here, 'test')).filter((name) => name.endsWith('.test.ts'));
  await build({
    absWorkingDir: here,
    entryPoints: names.map((name) => `test/${name}`),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node18',
  });
  const checked = spawnSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', here], { stdio: 'inherit' });
  if (checked.status !== 0) { process.exitCode = 1; return; }
  const run = spawnSync(process.execPath, ['--test', ...names.map((name) => join(folder, name.replace(/\.ts$/, '.mjs')))], {
    stdio: 'inherit',
    env: { ...process.env, SPILLWAY_ROOT: join(here, '..') },
  });
  process.exitCode = run.status ?? 1;
}

await (process.argv[2] === 'test' ? tests() : page());
