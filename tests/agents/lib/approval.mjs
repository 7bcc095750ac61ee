#!/usr/bin/env node
// approval: an agent under `toolrun launch` calls tools that ask a person, who sits at a second terminal: the first call is
// allowed there, the second denied, the third answered by nobody; a fourth is one that toolrun tries again as declared. Then
// what the agent's model was told is held against the record. Prints PASS|FAIL AGENT approval EXPECTATION [- why].
//   approval.mjs AGENT TOOLRUN DIR
// Agents are looked for in $AGENT_PKGS, a newer Node in $AGENT_NODE (a folder).
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
const here = path.dirname(fileURLToPath(import.meta.url));
const [agent, toolrun, root] = process.argv.slice(2), dir = path.resolve(root), at = (...p) => path.join(dir, ...p);
const say = (ok, what, why = '') => console.log(`${ok ? 'PASS' : 'FAIL'} ${agent} approval ${what}${ok ? '' : ' - ' + String(why).replace(/\s+/g, ' ').slice(0, 300)}`);
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
for (const d of ['home', 'work', 'journal', 'tmp', 'data']) fs.mkdirSync(at(d), { recursive: true, mode: 0o700 });

const mock = spawn(process.execPath, [path.join(here, 'mockllm.mjs'), '--script', path.join(here, '..', 'scripts', 'approval.json'), '--dir', at('journal')], { stdio: ['ignore', 'ignore', 'inherit'] });
let port = '';
for (let n = 0; n < 200 && !port; n++) { await sleep(50); try { port = fs.readFileSync(at('journal', 'port'), 'utf8').trim(); } catch { /* not yet */ } }
const base = 'http://127.0.0.1:' + port, prompt = 'HARNESS: deploy this project and report.';
const users = {
  claude: { args: ['-p', prompt], env: { ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: 'sk-test-dummy', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' } },
  codex: { args: ['exec', '--skip-git-repo-check', prompt], env: { MOCK_API_KEY: 'sk-test-dummy' },
    config: `model = "mock-model"\nmodel_provider = "mock"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.mock]\nname = "mock"\nbase_url = "${base}/v1"\nenv_key = "MOCK_API_KEY"\nwire_api = "responses"\n` },
};
const u = users[agent];
if (u.config) { fs.mkdirSync(at('home', '.codex')); fs.writeFileSync(at('home', '.codex', 'config.toml'), u.config); }
const nodeDir = process.env.AGENT_NODE ?? path.dirname(process.execPath);
const env = { PATH: [path.join(process.env.AGENT_PKGS, agent, 'node_modules', '.bin'), nodeDir, '/usr/local/bin', '/usr/bin', '/bin'].join(':'), HOME: at('home'), TMPDIR: at('tmp'), TERM: 'dumb', LANG: 'C.UTF-8', SHELL: '/bin/sh', TOOLRUN_DATA: at('data'), ...u.env };
const run = (args) => spawnSync(toolrun, args, { cwd: at('work'), env, encoding: 'utf8', input: '', timeout: 30000 });
// The second terminal: one that script(1) makes, in which a person types.
const terminal = (line) => spawnSync('script', ['-qec', line, '/dev/null'], { cwd: at('tmp'), env, encoding: 'utf8', input: '', timeout: 30000 });

fs.writeFileSync(at('data', 'config.toml'), 'approval_wait = "20s"\n', { mode: 0o600 });
fs.writeFileSync(at('work', 'tools.toml'), `[catalog]
name = "approval"
[tools.deploy]
description = "Deploy the project."
command = ["sh", "-c", 'echo "$1" >> deployed; echo "deployed to $1"', "deploy", "{to}"]
risk = "SEND"
[tools.deploy.params.to]
type = "string"
required = true
[tools.unsteady]
description = "Fails at first."
command = ["sh", "-c", 'test -e tried && echo steady now || {{ touch tried; exit 75; }']
risk = "DRAFT"
retry = { max = 2, on = ["exit:75"], backoff = "100ms" }
`);
run(['trust']);

const out = fs.openSync(at('stdout'), 'w'), err = fs.openSync(at('stderr'), 'w');
const p = spawn(toolrun, ['launch', agent, '--', ...u.args], { cwd: at('work'), env, stdio: ['ignore', out, err] });
let status = null; const ended = new Promise((done) => p.on('exit', (code, sig) => { status = code ?? sig; done(); }));
const waiting = async (to) => {
  for (let n = 0; n < 300 && status === null; n++) {
    const call = run(['pending', '--json']).stdout.split('\n').filter(Boolean).map((l) => JSON.parse(l)).find((c) => c.arguments.to === to);
    if (call) return call;
    await sleep(200);
  }
  return null;
};
const first = await waiting('staging');
say(first?.risk_class === 'SEND' && first.argv.at(-1) === 'staging', 'pending-shows-the-call', JSON.stringify(first));
await sleep(3000); // a client that declines by itself has done so
const allowed = first && terminal(`'${toolrun}' allow '${first.tool_call_id}'`);
say(allowed?.status === 0, 'allowed-from-a-second-terminal', allowed?.stdout);
const second = await waiting('prod'), denied = second && run(['deny', second.tool_call_id, '--reason', 'not on a Friday']);
say(denied?.status === 0, 'denied-from-a-second-terminal', denied?.stderr);
await Promise.race([ended, sleep(120000)]);
if (status === null) p.kill('SIGKILL');
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
const asked = journal.flatMap((j) => j.plan.calls.map((c) => c.obj.to ?? 'unsteady'));
say(asked.join() === 'staging,prod,moon,unsteady' && told.size === 4, 'the-model-asked-for-four-calls', asked + ' told ' + told.size);
const have = rows.map((r) => [r.tool_name, r.attempt, r.status, r.outcome, r.approval_status].join(' '));
const want = ['deploy 1 success ok approved', 'deploy 1 blocked declined denied', 'deploy 1 blocked approval_unavailable ', 'unsteady 1 retry exit ', 'unsteady 2 success ok '];
say(have.join() === want.join(), 'record-is-what-happened', have);
const verdicts = ['deployed to staging', 'not on a Friday', 'nobody answered within 20s', 'steady now'];
const last = ['staging', 'prod', 'moon', 'unsteady'].map((to, n) => rows.filter((r) => r.client_call_id?.endsWith(`_t${n}_0`)).at(-1));
say(last.every((r, n) => r && (told.get(r.client_call_id) ?? '').includes(verdicts[n])), 'the-model-was-told-what-the-record-says', [...told].map((t) => t.join(': ').slice(0, 90)));
say(last[0]?.approved_by?.via === 'terminal' && /^\/dev\/pts\//.test(last[0].approved_by.tty) && last[1]?.declined_by?.via === 'terminal', 'who-answered-is-on-the-row', JSON.stringify([last[0]?.approved_by, last[1]?.declined_by]));
say(last[0]?.hold_ms >= 3000 && last[0].duration_ms < 3000 && last[2]?.hold_ms >= 20000, 'waiting-is-no-part-of-the-call', rows.map((r) => r.hold_ms + ' ' + r.duration_ms));
say(last[3]?.tool_call_id === last[3]?.client_call_id + '#2', 'the-answer-is-the-last-attempts', last[3]?.tool_call_id);
let deployed = ''; try { deployed = fs.readFileSync(at('work', 'deployed'), 'utf8'); } catch { /* nothing was */ }
say(deployed === 'staging\n', 'what-nobody-allowed-did-not-run', deployed);
say(!fs.existsSync(at('data', 'pending')) || fs.readdirSync(at('data', 'pending')).length === 0, 'nothing-left-behind', '');
const v = run(['verify']); say(v.status === 0, 'verify', v.stdout + v.stderr);
