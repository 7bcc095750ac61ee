#!/usr/bin/env node
// record: one scenario of scripts/record.json with one agent; its transcript and the record of it are put into a folder.
//   record.mjs AGENT SCENARIO TOOLRUN FOLDER
// Prints AGENT SCENARIO and how many rows there are.
import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
const here = path.dirname(fileURLToPath(import.meta.url));
const [agent, scenario, toolrun, folder] = process.argv.slice(2);
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'record-')), at = (...p) => path.join(dir, ...p);
process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }));
const read = (p) => fs.readFileSync(p, 'utf8'), lines = (p) => read(p).split('\n').filter(Boolean);

// What the agent works with and what its model says. A call with "of" is of a tool of the agent itself.
fs.mkdirSync(at('run', 'work'), { recursive: true });
fs.writeFileSync(at('run', 'work', 'big.txt'), Array.from({ length: 1200 }, (_, i) => `line ${String(i).padStart(5, '0')} of a long file, with some text to fill it up\n`).join(''));
fs.writeFileSync(at('run', 'work', 'odd.txt'), '\x1b[31mred\x1b[0m\ttab\r\nüñí → 日本 \u202e bidi\n<untrusted_context> & "quotes" \\ back\ntoken = ghp_' + 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8' + '\n\n');
const turns = JSON.parse(read(path.join(here, '..', 'scripts', 'record.json')))[scenario];
for (const t of turns) t.calls = (t.calls ?? []).map((c) => (c.of ? { tool: c.of[agent][0], args: c.of[agent][1] } : c));
fs.writeFileSync(at('script.json'), JSON.stringify({ turns }));
fs.writeFileSync(at('tools.toml'), read(path.join(here, '..', 'tools.toml')) + read(path.join(here, '..', 'record.toml')));
const patience = { claude: 'env={"MCP_TOOL_TIMEOUT":"2000"}', codex: 'codex_server=tool_timeout_sec = 2', gemini: 'gemini_server={"timeout":2000}', opencode: 'opencode_server={"timeout":2000}', qwen: 'qwen_server={"timeout":2000}' };
const opt = scenario === 'honest-cancelled' ? ['--opt', patience[agent]] : [];
const r = spawnSync(path.join(process.env.AGENT_NODE, 'node'), ['--no-warnings', path.join(here, 'drive.mjs'), '--client', agent, '--dir', at('run'), '--script', at('script.json'), '--timeout', '120',
  '--prompt', 'HARNESS: look at the project and report.', ...opt, '--', toolrun, 'serve', '--catalog', at('tools.toml'), '--data', at('data')], { stdio: ['ignore', 'inherit', 'inherit'] });
if (r.status !== 0) throw new Error('drive: ' + r.status);
spawnSync(toolrun, ['sessions', '--data', at('data')]); // closes what the agent left open

// The same paths, host and day always; a day is shifted whole, so that times of the agent and of the record stay together.
const day = 864e5, first = JSON.parse(lines(at('data', 'ledger.jsonl'))[0]).started_at;
const shift = Date.parse('2026-12-01T00:00:00Z') - Date.parse(first.slice(0, 10) + 'T00:00:00Z');
const dashed = (p) => p.replace(/[^A-Za-z0-9]/g, '-');
const neutral = (text) => text.replaceAll(at('run'), '/home/dev/project').replaceAll(dashed(at('run')), '-home-dev-project').replaceAll(at('run').slice(1), 'home/dev/project')
  .replaceAll(JSON.stringify(os.hostname()), '"build-7"')
  .replace(/\b(20\d\d-\d\d-\d\d)(T\d\d[:-]\d\d)/g, (all, d, t) => (Math.abs(Date.parse(d) - Date.parse(first.slice(0, 10))) > day ? all : new Date(Date.parse(d) + shift).toISOString().slice(0, 10) + t))
  .replace(/\b1[789]\d{11}\b/g, (n) => (Math.abs(n - Date.parse(first)) > day ? n : String(+n + shift)));
const run = JSON.parse(read(at('run', 'run.json')));
const found = run.transcripts.filter((f) => !/subagents|-(wal|shm)$/.test(f));
const transcript = found.find((f) => f.endsWith('.db')) ?? found.sort((a, b) => fs.statSync(at('run', b)).size - fs.statSync(at('run', a)).size)[0];
if (!transcript) throw new Error('no transcript: ' + JSON.stringify(run.steps));
fs.rmSync(folder, { recursive: true, force: true });
const put = (name, text) => { const f = path.join(folder, name); fs.mkdirSync(path.dirname(f), { recursive: true }); fs.writeFileSync(f, text); };
if (agent === 'opencode') put('transcript.json', neutral(await exported(at('run', transcript))));
else put('transcript' + path.extname(transcript), neutral(lines(at('run', transcript)).map(short).join('\n') + '\n'));

// Of the record: the rows, the traces of their runs, and what the rows name, the definitions of their tools among it.
const rows = lines(at('data', 'ledger.jsonl')).map((l) => JSON.parse(l));
put('data/ledger.jsonl', neutral(read(at('data', 'ledger.jsonl'))));
for (const id of new Set(rows.map((x) => x.run_id))) put(`data/runs/${id}.jsonl`, neutral(read(at('data', 'runs', id + '.jsonl'))));
for (const h of new Set(rows.flatMap((x) => [x.input_hash, x.output_hash, x.stderr_hash, x.definition_sha256]).filter(Boolean))) {
  const object = fs.readFileSync(at('data', 'store', h.slice(0, 2), h + '.txt'));
  if (crypto.createHash('sha256').update(object).digest('hex') !== h || object.includes(dir)) throw new Error('object ' + h);
  put(`data/store/${h.slice(0, 2)}/${h}.txt`, object);
}
console.log(agent, scenario, rows.length);

// short leaves of what was sent to the model, and of how the agent was told to be, the beginning of each text.
function short(line) {
  const o = JSON.parse(line), cut = (_, v) => (typeof v === 'string' && v.length > 300 ? v.slice(0, 300) + ' [cut]' : v);
  const told = o.type === 'response_item' && ['developer', 'user', 'system'].includes(o.payload.role);
  return told || ['api-request-blob', 'session_meta', 'turn_context', 'world_state', 'system', 'tools-used', 'attachment'].includes(o.type) ? JSON.stringify(o, cut) : line;
}

// exported is what `opencode export` prints of the session.
async function exported(file) {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(file, { readOnly: true }), all = (q, ...a) => db.prepare(q).all(...a);
  const s = all('SELECT * FROM session WHERE parent_id IS NULL ORDER BY time_created DESC')[0];
  const info = { id: s.id, slug: s.slug, projectID: s.project_id, directory: s.directory, title: s.title, version: s.version, time: { created: s.time_created, updated: s.time_updated } };
  const messages = all('SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id', s.id).map((m) => ({ info: { ...JSON.parse(m.data), id: m.id, sessionID: s.id },
    parts: all('SELECT * FROM part WHERE message_id = ? ORDER BY id', m.id).map((p) => ({ ...JSON.parse(p.data), id: p.id, sessionID: s.id, messageID: m.id })) }));
  db.close();
  return JSON.stringify({ info, messages }, null, 1) + '\n';
}
