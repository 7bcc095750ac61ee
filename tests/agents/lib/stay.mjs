#!/usr/bin/env node
// stay: an agent under `toolrun launch` works with programs that stay. Then what its model was told is held against the record.
// Prints PASS|FAIL AGENT stay EXPECTATION [- why].
//   stay.mjs AGENT TOOLRUN DIR
// The program that crashes and the build are scripts. The build takes three minutes, the agent waits no longer than one for a call.
import fs from 'node:fs';
import { user } from './user.mjs';
const [agent, toolrun, root] = process.argv.slice(2);
const { at, say, run, ...u } = await user({ agent, scenario: 'stay', toolrun, root, script: 'stay.json', prompt: 'HARNESS: work with the programs of this project and report.' });
u.patience(60);

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

const l = u.launch(480);
await l.ended;
const [stdout, stderr] = u.told();
say(l.status === 0 && stdout.includes('all green'), 'conversation-finished', l.status + ' ' + stdout.slice(-200) + stderr.slice(-200));

// What the model was told, and what the record says.
const told = u.results(), rows = u.rows();
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
