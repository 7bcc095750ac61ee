#!/usr/bin/env node
// launch: a new user's way. An empty folder, `toolrun init`, `toolrun launch AGENT`; then what the agent's model was told
// is held against toolrun's record. Prints PASS|FAIL AGENT launch EXPECTATION [- why].
//   launch.mjs AGENT TOOLRUN DIR [interrupt|more]
// interrupt: SIGINT to the group of launch, as by Ctrl-C, while a call runs. more: 30 calls at once, a retry of the agent's own,
// a call that the client's own limit ends.
import fs from 'node:fs';
import { sleep, user } from './user.mjs';
const [agent, toolrun, root, scenario = 'basic'] = process.argv.slice(2);
const { at, say, run, ...u } = await user({ agent, scenario: scenario === 'basic' ? 'launch' : 'launch-' + scenario, toolrun, root,
  script: { basic: 'launch.json', interrupt: 'launch-slow.json', more: 'launch-more.json' }[scenario], prompt: 'HARNESS: look around in this project and report.' });

// Two tools that init does not write, and its read_file made to take long enough for calls at once to be seen.
function extend() {
  run(['init']);
  const catalog = fs.readFileSync(at('work', 'tools.toml'), 'utf8').replace('["cat", "--", "{path}"]', `["sh", "-c", 'sleep 0.3; cat -- "$1"', "cat", "{path}"]`);
  fs.writeFileSync(at('work', 'tools.toml'), catalog + '\n[tools.slow]\ndescription = "Takes long."\ncommand = ["sleep", "25.125"]\nrisk = "READ"\n' +
    "[tools.flaky]\ndescription = \"Fails once.\"\ncommand = [\"sh\", \"-c\", 'test -e ok || {{ touch ok; exit 1; }']\nrisk = \"DRAFT\"\n");
  run(['trust']);
}
if (scenario === 'interrupt') {
  extend();
  const { p, ended } = u.launch(150, { detached: true });
  const pids = () => fs.readdirSync('/proc').filter((d) => { try { return /^\d+$/.test(d) && fs.readFileSync(`/proc/${d}/cmdline`, 'utf8').startsWith('sleep\0' + '25.125'); } catch { return false; } });
  const until = async (ok, s) => { for (let n = 0; n < s * 20 && !ok(); n++) await sleep(50); return ok(); };
  const runs = await until(() => pids().length > 0, 90);
  say(runs, 'call-runs', fs.readFileSync(at('stderr'), 'utf8').slice(-250));
  process.kill(-p.pid, 'SIGINT');
  const at10 = await Promise.race([ended, new Promise((r) => setTimeout(r, 10000, 0))]);
  say(at10 > 0, 'ends-with-its-agent', 'still there after 10 s'); if (!at10) { try { process.kill(-p.pid, 'SIGKILL'); } catch { /* gone */ } }
  const [, told] = u.told();
  say(await until(() => pids().length === 0, 2), 'nothing-left-running', pids());
  const rows = u.rows();
  say(rows.length === 1 && ['interrupted', 'cancelled'].includes(rows[0].outcome), 'call-is-on-the-record', rows.map((row) => row.outcome));
  say(/: 1 call, 1 failed, 0 refused/.test(told), 'summary', told.slice(-250));
  const v = run(['verify']); say(v.status === 0, 'verify', v.stdout + v.stderr);
  process.exit(0);
}
if (scenario === 'more') {
  extend();
  for (let n = 0; n < 30; n++) fs.writeFileSync(at('work', `f${String(n).padStart(2, '0')}.txt`), n + '\n');
  u.patience(3);
}
const began = Date.now(), init = scenario === 'more' ? { status: 0 } : run(['init']), l = u.launch(150), took = (await l.ended) - began;
const [stdout, stderr] = u.told();
say(init.status === 0, 'init', init.stderr);
say(l.status === 0, 'exit-status-is-the-agents', `status ${l.status}: ${stderr.slice(-250)}`);
if (scenario === 'basic' && (agent === 'claude' || agent === 'codex')) say(took < 60000, 'in-under-a-minute', took + ' ms');
say(stdout.includes('all green'), 'conversation-finished', stdout.slice(-200) + stderr.slice(-200));

// What the model was offered, and what it asked for.
const journal = u.journal();
const offered = [...new Set(journal.flatMap((j) => j.plan.offered))], own = offered.filter((o) => !/(^|_)box(_|:)/.test(o));
say(['list_files', 'output', 'read_file', 'search', 'write_file'].every((n) => offered.some((o) => /box/.test(o) && o.endsWith(n))), 'tools-offered-to-model', offered);
say(own.every((o) => u.kept.includes(o)), 'its-own-tools-are-off', own.filter((o) => !u.kept.includes(o)));
const asked = journal.flatMap((j) => j.plan.calls.map((c) => [/(?:^|box[_:]+)(list_files|write_file|read_file|slow|flaky)$/.exec(c.name)?.[1], c.obj]));

// What the record says.
const rows = u.rows();
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
const told = stderr.split('\n').filter((l) => l.startsWith('toolrun: '));
say(told.some((l) => (scenario === 'more' ? /: 34 calls, 2 failed, 0 refused/ : /ended with exit status 0 after .*: 4 calls, 1 failed, 0 refused/).test(l)) && told.some((l) => l === `toolrun: more: toolrun session ${session}`), 'summary', told.join(' | '));
if (agent === 'claude' || agent === 'codex') {
  const files = fs.readdirSync(at('home', agent === 'claude' ? '.claude/projects' : '.codex/sessions'), { recursive: true }).filter((f) => f.includes(session));
  say(files.length === 1, 'session-is-the-transcripts', session);
  say(rows.every((row) => /_t\d_\d+$/.test(row.client_call_id ?? '')), 'calls-have-the-ids-of-the-model', rows.map((row) => row.client_call_id));
}
say(Object.entries(u.files).every(([f, was]) => { const now = fs.readFileSync(at('home', f), 'utf8'); return agent === 'qwen' || now === was || !/box|toolrun/.test(now); }) && fs.readdirSync(at('work')).filter((f) => !/^f\d\d\.txt$/.test(f)).sort().join() === (scenario === 'more' ? 'ok,tools.toml' : 'new.txt,tools.toml'), 'files-of-the-user-untouched', fs.readdirSync(at('work')));
say(fs.readdirSync(at('data', 'launch')).length === 0, 'nothing-left-of-the-launch', fs.readdirSync(at('data', 'launch')));
const v = run(['verify']); say(v.status === 0, 'verify', v.stdout + v.stderr);
