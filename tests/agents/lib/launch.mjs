#!/usr/bin/env node
// launch: a new user's way. An empty folder, `toolrun init`, `toolrun launch AGENT`; then what the agent's model was told
// is held against toolrun's record. Prints PASS|FAIL AGENT launch EXPECTATION [- why].
//   launch.mjs AGENT TOOLRUN DIR [interrupt|more]
// interrupt: SIGINT to the group of launch, as by Ctrl-C, while a call runs. more: 30 calls at once, a retry of the agent's own,
// a call that the client's own limit ends.
// Agents are looked for in $AGENT_PKGS, a newer Node in $AGENT_NODE (a folder).
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
const here = path.dirname(fileURLToPath(import.meta.url));
const [agent, toolrun, root, scenario = 'basic'] = process.argv.slice(2), dir = path.resolve(root), at = (...p) => path.join(dir, ...p);
const say = (ok, what, why = '') => console.log(`${ok ? 'PASS' : 'FAIL'} ${agent} ${scenario === 'basic' ? 'launch' : 'launch-' + scenario} ${what}${ok ? '' : ' - ' + String(why).replace(/\s+/g, ' ').slice(0, 300)}`);
for (const d of ['home', 'work', 'journal', 'tmp', 'data']) fs.mkdirSync(at(d), { recursive: true, mode: 0o700 });
const put = (file, o) => { fs.mkdirSync(path.dirname(at('home', file)), { recursive: true }); fs.writeFileSync(at('home', file), typeof o === 'string' ? o : JSON.stringify(o)); };

const mock = spawn(process.execPath, [path.join(here, 'mockllm.mjs'), '--script', path.join(here, '..', 'scripts', { basic: 'launch.json', interrupt: 'launch-slow.json', more: 'launch-more.json' }[scenario]), '--dir', at('journal')], { stdio: ['ignore', 'ignore', 'inherit'] });
let port = '';
for (let n = 0; n < 200 && !port; n++) { await new Promise((r) => setTimeout(r, 50)); try { port = fs.readFileSync(at('journal', 'port'), 'utf8').trim(); } catch { /* not yet */ } }
const base = 'http://127.0.0.1:' + port, prompt = 'HARNESS: look around in this project and report.';

// What a user has set up before: the model, and nothing of toolrun. kept: tools of its own that touch nothing.
const users = {
  claude: { args: ['-p', prompt], kept: [],
    env: { ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: 'sk-test-dummy', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' } },
  codex: { args: ['exec', '--skip-git-repo-check', prompt], env: { MOCK_API_KEY: 'sk-test-dummy' },
    kept: ['list_mcp_resources', 'list_mcp_resource_templates', 'read_mcp_resource', 'request_user_input', 'get_goal', 'create_goal', 'update_goal'],
    files: { '.codex/config.toml': `model = "mock-model"\nmodel_provider = "mock"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.mock]\nname = "mock"\nbase_url = "${base}/v1"\nenv_key = "MOCK_API_KEY"\nwire_api = "responses"\n` } },
  gemini: { args: ['--skip-trust', '--approval-mode', 'yolo', '-m', 'gemini-2.5-flash', '-p', prompt], kept: ['update_topic', 'enter_plan_mode', 'write_todos', 'ask_user', 'read_file', 'write_file'],
    env: { GEMINI_API_KEY: 'sk-test-dummy', GOOGLE_GEMINI_BASE_URL: base },
    files: { '.gemini/settings.json': { security: { auth: { selectedType: 'gemini-api-key' } }, privacy: { usageStatisticsEnabled: false }, general: { enableAutoUpdate: false } } } },
  opencode: { args: ['run', prompt], kept: [],
    env: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1', OPENCODE_DISABLE_DEFAULT_PLUGINS: '1' },
    files: { '.config/opencode/opencode.json': { autoupdate: false, share: 'disabled', model: 'mock/mock-model', small_model: 'mock/mock-model', enabled_providers: ['mock'],
      provider: { mock: { npm: '@ai-sdk/openai-compatible', name: 'mock', options: { baseURL: base + '/v1', apiKey: 'sk-test-dummy' }, models: { 'mock-model': { name: 'mock', tool_call: true, limit: { context: 100000, output: 4000 } } } } } } } },
  qwen: { args: ['-p', prompt], kept: ['tool_search', 'tool_call', 'get_goal', 'update_goal', 'create_goal', 'list_agents'],
    env: { OPENAI_API_KEY: 'sk-test-dummy', OPENAI_BASE_URL: base + '/v1', OPENAI_MODEL: 'mock-model' },
    files: { '.qwen/settings.json': { security: { auth: { selectedType: 'openai' } }, privacy: { usageStatisticsEnabled: false }, general: { enableAutoUpdate: false }, model: { name: 'mock-model' } } } },
};
const u = users[agent];
for (const [f, o] of Object.entries(u.files ?? {})) put(f, o);
const nodeDir = process.env.AGENT_NODE ?? path.dirname(process.execPath);
const env = { PATH: [path.join(process.env.AGENT_PKGS, agent, 'node_modules', '.bin'), nodeDir, '/usr/local/bin', '/usr/bin', '/bin'].join(':'), HOME: at('home'), TMPDIR: at('tmp'), TERM: 'dumb', LANG: 'C.UTF-8', SHELL: '/bin/sh', TOOLRUN_DATA: at('data'), ...u.env };
const run = (args) => spawnSync(toolrun, args, { cwd: at('work'), env, encoding: 'utf8', input: '', timeout: 150000, maxBuffer: 1 << 26 });

const readRows = () => { try { return fs.readFileSync(at('data', 'ledger.jsonl'), 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l)); } catch { return []; } };
// Two tools that init does not write.
function extend() {
  run(['init']);
  fs.appendFileSync(at('work', 'tools.toml'), '\n[tools.slow]\ndescription = "Takes long."\ncommand = ["sleep", "25.125"]\nrisk = "READ"\n' +
    "[tools.flaky]\ndescription = \"Fails once.\"\ncommand = [\"sh\", \"-c\", 'test -e ok || { touch ok; exit 1; }']\nrisk = \"DRAFT\"\n".replace('{ touch ok; exit 1; }', '{{ touch ok; exit 1; }'));
  run(['trust']);
}
if (scenario === 'interrupt') {
  extend();
  const out = fs.openSync(at('stdout'), 'w'), err = fs.openSync(at('stderr'), 'w');
  const p = spawn(toolrun, ['launch', agent, '--', ...u.args], { cwd: at('work'), env, stdio: ['ignore', out, err], detached: true });
  let status = null; const ended = new Promise((done) => p.on('exit', (code, sig) => { status = code ?? sig; done(Date.now()); }));
  const pids = () => fs.readdirSync('/proc').filter((d) => { try { return /^\d+$/.test(d) && fs.readFileSync(`/proc/${d}/cmdline`, 'utf8').startsWith('sleep\0' + '25.125'); } catch { return false; } });
  const until = async (ok, s) => { for (let n = 0; n < s * 20 && !ok(); n++) await new Promise((r) => setTimeout(r, 50)); return ok(); };
  const runs = await until(() => pids().length > 0, 90);
  say(runs, 'call-runs', fs.readFileSync(at('stderr'), 'utf8').slice(-250));
  process.kill(-p.pid, 'SIGINT');
  const at10 = await Promise.race([ended, new Promise((r) => setTimeout(r, 10000, 0))]);
  say(at10 > 0, 'ends-with-its-agent', 'still there after 10 s'); if (!at10) { try { process.kill(-p.pid, 'SIGKILL'); } catch { /* gone */ } }
  mock.kill('SIGTERM');
  const told = fs.readFileSync(at('stderr'), 'utf8');
  say(await until(() => pids().length === 0, 2), 'nothing-left-running', pids());
  const rows = readRows();
  say(rows.length === 1 && ['interrupted', 'cancelled'].includes(rows[0].outcome), 'call-is-on-the-record', rows.map((row) => row.outcome));
  say(/: 1 call, 1 failed, 0 refused/.test(told), 'summary', told.slice(-250));
  const v = run(['verify']); say(v.status === 0, 'verify', v.stdout + v.stderr);
  process.exit(0);
}
if (scenario === 'more') {
  extend();
  for (let n = 0; n < 30; n++) fs.writeFileSync(at('work', `f${String(n).padStart(2, '0')}.txt`), n + '\n');
  if (agent === 'codex') u.args.unshift('-c', 'mcp_servers.box.tool_timeout_sec=3'); else env.MCP_TOOL_TIMEOUT = '3000';
}
const began = Date.now(), init = scenario === 'more' ? { status: 0 } : run(['init']), r = run(['launch', agent, '--', ...u.args]), took = Date.now() - began;
fs.writeFileSync(at('stdout'), r.stdout); fs.writeFileSync(at('stderr'), r.stderr);
mock.kill('SIGTERM');
say(init.status === 0, 'init', init.stderr);
say(r.status === 0, 'exit-status-is-the-agents', `status ${r.status} ${r.signal ?? ''}: ${r.stderr.slice(-250)}`);
if (scenario === 'basic' && (agent === 'claude' || agent === 'codex')) say(took < 60000, 'in-under-a-minute', took + ' ms');
say(r.stdout.includes('all green'), 'conversation-finished', r.stdout.slice(-200) + r.stderr.slice(-200));

// What the model was offered, and what it asked for.
const journal = fs.readdirSync(at('journal')).filter((f) => f.endsWith('.json')).sort().map((f) => JSON.parse(fs.readFileSync(at('journal', f), 'utf8'))).filter((j) => j.plan?.kind === 'main');
const offered = [...new Set(journal.flatMap((j) => j.plan.offered))], own = offered.filter((o) => !/(^|_)box(_|:)/.test(o));
say(['list_files', 'output', 'read_file', 'search', 'write_file'].every((n) => offered.some((o) => /box/.test(o) && o.endsWith(n))), 'tools-offered-to-model', offered);
say(own.every((o) => u.kept.includes(o)), 'its-own-tools-are-off', own.filter((o) => !u.kept.includes(o)));
const asked = journal.flatMap((j) => j.plan.calls.map((c) => [/(?:^|box[_:]+)(list_files|write_file|read_file|slow|flaky)$/.exec(c.name)?.[1], c.obj]));

// What the record says, read without toolrun.
const rows = readRows();
const args = (row) => JSON.parse(fs.readFileSync(at('data', 'store', row.input_hash.slice(0, 2), row.input_hash + '.txt'), 'utf8'));
const key = (name, o) => name + ' ' + JSON.stringify(Object.entries(o).sort());
const want = asked.map(([n, o]) => key(n, o)).sort(), have = rows.map((row) => key(row.tool_name, args(row))).sort();
say(asked.length === (scenario === 'more' ? 34 : 4) && want.join() === have.join(), 'record-is-what-the-model-asked-for', `asked ${want}, recorded ${have}`);
if (scenario === 'more') {
  const of = (name) => rows.filter((row) => row.tool_name === name), reads = of('read_file'), flaky = of('flaky'), slow = of('slow');
  say(reads.length === 30 && reads.every((row) => row.outcome === 'ok') && new Set(rows.map((row) => row.tool_call_id)).size === rows.length, '30-calls-30-rows', reads.map((row) => row.outcome));
  say(reads.some((x) => reads.some((y) => x !== y && x.started_at < y.started_at && y.started_at < x.ended_at)), 'calls-run-at-the-same-time', 'no two overlap');
  say(flaky.map((row) => `${row.outcome} ${row.repeat}`).join() === 'exit 0,ok 1' && flaky[1].repeat_of === flaky[0].tool_call_id, 'the-agents-retry-is-told', flaky.map((row) => `${row.outcome} ${row.repeat} ${row.repeat_of}`));
  say(slow.length === 1 && slow[0].outcome === 'cancelled' && slow[0].duration_ms < 15000, 'call-that-the-client-gave-up', slow.map((row) => row.outcome + ' ' + row.duration_ms));
} else say(rows.length === 4 && rows.every((row) => (row.status === 'success') === (args(row).path !== 'missing.txt')), 'calls-ended-as-they-should', rows.map((row) => row.tool_name + ' ' + row.outcome));
const sessions = new Set(rows.map((row) => row.session_id)), [session] = sessions;
say(sessions.size === 1 && rows.every((row) => row.session_from !== 'run' && row.client), 'one-session-that-has-a-name', rows.map((row) => row.session_from + ' ' + row.session_id));
const told = r.stderr.split('\n').filter((l) => l.startsWith('toolrun: '));
say(told.some((l) => (scenario === 'more' ? /: 34 calls, 2 failed, 0 refused/ : /ended with exit status 0 after .*: 4 calls, 1 failed, 0 refused/).test(l)) && told.some((l) => l === `toolrun: more: toolrun session ${session}`), 'summary', told.join(' | '));
if (agent === 'claude' || agent === 'codex') {
  const files = fs.readdirSync(at('home', agent === 'claude' ? '.claude/projects' : '.codex/sessions'), { recursive: true }).filter((f) => f.includes(session));
  say(files.length === 1, 'session-is-the-transcripts', session);
  say(rows.every((row) => /_t\d_\d+$/.test(row.client_call_id ?? '')), 'calls-have-the-ids-of-the-model', rows.map((row) => row.client_call_id));
}
say(Object.entries(u.files ?? {}).every(([f, o]) => { const now = fs.readFileSync(at('home', f), 'utf8'); return agent === 'qwen' || now === (typeof o === 'string' ? o : JSON.stringify(o)) || !/box|toolrun/.test(now); }) && fs.readdirSync(at('work')).filter((f) => !/^f\d\d\.txt$/.test(f)).sort().join() === (scenario === 'more' ? 'ok,tools.toml' : 'new.txt,tools.toml'), 'files-of-the-user-untouched', fs.readdirSync(at('work')));
say(fs.readdirSync(at('data', 'launch')).length === 0, 'nothing-left-of-the-launch', fs.readdirSync(at('data', 'launch')));
const v = run(['verify']); say(v.status === 0, 'verify', v.stdout + v.stderr);
