#!/usr/bin/env node
// approval: an agent under `toolrun launch` calls tools that ask a person, who sits at a second terminal: the first call is
// allowed there, the second denied, the third answered by nobody; a fourth is one that toolrun tries again as declared. Then
// what the agent's model was told is held against the record. Prints PASS|FAIL AGENT approval EXPECTATION [- why].
//   approval.mjs AGENT TOOLRUN DIR
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { sleep, user } from './user.mjs';
const [agent, toolrun, root] = process.argv.slice(2);
const { at, say, run, env, ...u } = await user({ agent, scenario: 'approval', toolrun, root, script: 'approval.json', prompt: 'HARNESS: deploy this project and report.' });
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

const l = u.launch(300);
const waiting = async (to) => {
  for (let n = 0; n < 300 && l.status === null; n++) {
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
await l.ended;
const [stdout, stderr] = u.told();
say(l.status === 0 && stdout.includes('all green'), 'conversation-finished', l.status + ' ' + stdout.slice(-200) + stderr.slice(-200));

// What the model was told, and what the record says.
const told = u.results(), rows = u.rows();
const asked = u.journal().flatMap((j) => j.plan.calls.map((c) => c.obj.to ?? 'unsteady'));
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
