#!/usr/bin/env node
// stay: an agent under `toolrun launch` works with programs that stay. Then what its model was told is held against the record.
// Prints PASS|FAIL AGENT stay EXPECTATION [- why].
//   stay.mjs AGENT TOOLRUN DIR
// Agents are looked for in $AGENT_PKGS, a newer Node in $AGENT_NODE (a folder). The program that crashes and the build are scripts.
// The build takes three minutes, the agent waits no longer than one for a call.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
const here = path.dirname(fileURLToPath(import.meta.url));
const [agent, toolrun, root] = process.argv.slice(2), dir = path.resolve(root), at = (...p) => path.join(dir, ...p);
const say = (ok, what, why = '') => console.log(`${ok ? 'PASS' : 'FAIL'} ${agent} stay ${what}${ok ? '' : ' - ' + String(why).replace(/\s+/g, ' ').slice(0, 300)}`);
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
for (const d of ['home', 'work', 'journal', 'tmp', 'data']) fs.mkdirSync(at(d), { recursive: true, mode: 0o700 });

const mock = spawn(process.execPath, [path.join(here, 'mockllm.mjs'), '--script', path.join(here, '..', 'scripts', 'stay.json'), '--dir', at('journal')], { stdio: ['ignore', 'ignore', 'inherit'] });
let port = '';
for (let n = 0; n < 200 && !port; n++) { await sleep(50); try { port = fs.readFileSync(at('journal', 'port'), 'utf8').trim(); } catch { /* not yet */ } }
const base = 'http://127.0.0.1:' + port, prompt = 'HARNESS: work with the programs of this project and report.';
const users = {
  claude: { args: ['-p', prompt], env: { MCP_TOOL_TIMEOUT: '60000', ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: 'sk-test-dummy', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' } },
  codex: { args: ['exec', '--config=mcp_servers.box.tool_timeout_sec=60', '--skip-git-repo-check', prompt], env: { MOCK_API_KEY: 'sk-test-dummy' },
    config: `model = "mock-model"\nmodel_provider = "mock"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.mock]\nname = "mock"\nbase_url = "${base}/v1"\nenv_key = "MOCK_API_KEY"\nwire_api = "responses"\n` },
};
const u = users[agent];
if (u.config) { fs.mkdirSync(at('home', '.codex')); fs.writeFileSync(at('home', '.codex', 'config.toml'), u.config); }
const nodeDir = process.env.AGENT_NODE ?? path.dirname(process.execPath);
const env = { PATH: [path.join(process.env.AGENT_PKGS, agent, 'node_modules', '.bin'), nodeDir, '/usr/local/bin', '/usr/bin', '/bin'].join(':'), HOME: at('home'), TMPDIR: at('tmp'), TERM: 'dumb', LANG: 'C.UTF-8', SHELL: '/bin/sh', TOOLRUN_DATA: at('data'), ...u.env };
const run = (args) => spawnSync(toolrun, args, { cwd: at('work'), env, encoding: 'utf8', input: '', timeout: 30000 });

fs.writeFileSync(at('work', 'page.txt'), 'served-over-loopback\n');
fs.writeFileSync(at('work', 'tools.toml'), `[catalog]
name = "stay"
[defaults]
risk = "DRAFT"
[tools.py]
description = "A Python REPL."
command = ["python3", "-q"]
mode = "session"
pty = true
[tools.gdb]
description = "A debugger on the program that crashes."
command = ["gdb", "-q", "-nx", "--args", "sh", "-c", "kill -SEGV $$"]
mode = "session"
pty = true
sandbox = { ptrace = true }
[tools.dev]
description = "A shell for the development server."
command = ["sh"]
mode = "session"
stderr = "merge"
[tools.build]
description = "Build everything."
command = ["sh", "-c", "echo compiling; sleep 180; echo built"]
mode = "background"
`);
run(['trust']);

const out = fs.openSync(at('stdout'), 'w'), err = fs.openSync(at('stderr'), 'w');
const p = spawn(toolrun, ['launch', agent, '--', ...u.args], { cwd: at('work'), env, stdio: ['ignore', out, err] });
let status = null; const ended = new Promise((done) => p.on('exit', (code, sig) => { status = code ?? sig; done(); }));
const limit = setTimeout(() => p.kill('SIGKILL'), 480000);
await ended;
clearTimeout(limit);
mock.kill('SIGTERM');
const stdout = fs.readFileSync(at('stdout'), 'utf8'), stderr = fs.readFileSync(at('stderr'), 'utf8');
say(status === 0 && stdout.includes('all green'), 'conversation-finished', status + ' ' + stdout.slice(-200) + stderr.slice(-200));

// What the model was told, and what the record says, read without toolrun.
const journal = fs.readdirSync(at('journal')).filter((f) => f.endsWith('.json')).sort().map((f) => JSON.parse(fs.readFileSync(at('journal', f), 'utf8'))).filter((j) => j.plan?.kind === 'main');
const told = new Map();
for (const j of journal) {
  for (const m of j.body.messages ?? []) for (const c of Array.isArray(m.content) ? m.content : []) if (c.type === 'tool_result') told.set(c.tool_use_id, JSON.stringify(c.content));
  for (const i of Array.isArray(j.body.input) ? j.body.input : []) if (i.type === 'function_call_output') told.set(i.call_id, JSON.stringify(i.output));
}
let rows = []; try { rows = fs.readFileSync(at('data', 'ledger.jsonl'), 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l)); } catch { /* none */ }
const answer = (turn) => [...told].find(([id]) => id.endsWith(`_t${turn}_0`))?.[1] ?? '';
// Some agents show their model the text of an answer, some its facts.
const expect = { 2: [/<42>/, 'what-python-says'], 5: [/SIGSEGV/, 'the-crash'], 8: [/Serving/, 'the-server'], 10: [/served-over-loopback/, 'what-the-server-serves'],
  12: [/compiling/, 'the-build'], 13: [/still runs|running\W+true/, 'that-it-runs'], 14: [/still runs/, 'its-handle'],
  17: [/still runs|running\W+true/, 'that-it-runs-after-two-minutes'], 18: [/built/, 'its-end'], 19: [/has ended|running\W+false/, 'the-end-of-python'] };
for (const [turn, [text, what]] of Object.entries(expect)) say(text.test(answer(turn)), 'the-model-is-told-' + what, answer(turn));
const processes = rows.filter((r) => r.flags.includes('PROCESS')), calls = rows.filter((r) => !r.flags.includes('PROCESS'));
say(calls.length === 20 && calls.every((r) => r.status === 'success'), 'each-call-has-its-row', calls.map((r) => r.tool_name + ' ' + r.status));
const ends = Object.fromEntries(processes.map((r) => [r.tool_name, r.outcome]));
const built = processes.find((r) => r.tool_name === 'build_start');
say(built?.duration_ms >= 180000 && calls.every((r) => r.duration_ms < 60000), 'the-build-outlasts-the-limit-of-a-call', built?.duration_ms);
say(processes.length === 4 && ends.py_start === 'ok' && ends.build_start === 'ok' && ends.gdb_start === 'interrupted' && ends.dev_start === 'interrupted', 'each-program-has-its-end', JSON.stringify(ends));
say(processes.every((r) => calls.some((c) => c.tool_call_id === r.parent_call_id && c.tool_name === r.tool_name)), 'each-program-names-its-start', '');
const audit = run(['audit']); say(audit.status === 0 && audit.stdout.includes('20 paired'), 'audit', audit.stdout + audit.stderr);
const v = run(['verify']); say(v.status === 0, 'verify', v.stdout + v.stderr);
