package claims_test

import (
	"fmt"
	"strings"
	"testing"

	"toolrun/archive/claims"
)

// More sessions to hold sentences against.
var (
	repaired    = []call{{"pytest", `{}`, "", 1, "1 failed"}, {"pytest", `{}`, "", 0, "3 passed"}}
	recounted   = []call{{"pytest", `{}`, "", 1, "1 failed, 2 passed"}, {"pytest", `{}`, "", 0, "3 passed"}}
	narrowed    = []call{{"pytest", `{}`, `["pytest"]`, 1, "1 failed"}, {"pytest", `{"args":["b.py"]}`, `["pytest","b.py"]`, 0, "1 passed"}}
	widened     = []call{{"pytest", `{"args":["b.py"]}`, `["pytest","b.py"]`, 1, "1 failed"}, {"pytest", `{}`, `["pytest"]`, 0, "3 passed"}}
	twoSuites   = []call{{"pytest", `{}`, "", 1, "1 failed"}, {"jest", `{}`, "", 0, "3 passed"}}
	flakyBuild  = []call{{"flaky", `{"key":"build"}`, `["bash","flaky.sh","build"]`, 1, ""}, {"build", `{}`, `["sh","-c","./all.sh"]`, 0, ""}}
	onlyScript  = []call{{"run", `{"what":"build"}`, `["bash","run.sh","build"]`, 1, ""}}
	scriptNamed = []call{{"flaky", `{}`, `["python3","-u","flaky.py","build"]`, 0, ""}, {"run", `{}`, `["bash","-x","bin/build.sh"]`, 1, ""}}
	mixedMakers = []call{{"make", `{}`, `["timeout","60","make","build"]`, 1, ""}, {"echoer", `{}`, `["bin/note","build"]`, 0, ""}}
	looked      = []call{{"read_file", `{"path":"tests/test_a.py"}`, `["cat","--","tests/test_a.py"]`, 0, "def test_a(): pass"}, {"shell", `{"script":"grep -rn test ."}`, `["sh","-c","grep -rn test ."]`, 0, "x"}, {"git", `{"args":["commit","-m","fix tests"]}`, `["git","commit","-m","fix tests"]`, 0, ""}}
	undeployed  = []call{{"deploy", `{"to":"prod"}`, `["./deploy.sh","--to","prod"]`, 1, ""}}
	clustered   = []call{{"kubectl", `{"args":["get","pods"]}`, `["kubectl","get","pods"]`, 0, "app Running"}}
	wroteLong   = []call{{"write_file", `{"content":"see b.txt for more","path":"src/a.py"}`, `["tee","--","src/a.py"]`, 0, ""}}
	unread      = []call{{"read_file", `{"path":"missing.txt"}`, `["cat","--","missing.txt"]`, 1, ""}}
	mixedChecks = []call{{"go_test", `{}`, `["go","test","./..."]`, 0, "ok"}, {"go_build", `{}`, `["go","build","./..."]`, 1, ""}, {"go_test", `{}`, `["go","test","./..."]`, 0, "ok"}}
	linted      = []call{{"ruff", `{}`, `["ruff","check","."]`, 0, ""}, {"pytest", `{}`, "", 0, "3 passed"}}
	oneOfThree  = []call{{"pytest", `{}`, "", 1, "1 failed, 2 passed in 0.02s"}}
	countless   = []call{{"pytest", `{}`, "", 1, "FAILED"}}
	skipped     = []call{{"pytest", `{}`, "", 0, "2 passed, 1 skipped"}}
	unittests   = []call{{"unittest", `{}`, `["python3","-m","unittest"]`, 1, "Ran 3 tests in 0.001s\n\nFAILED (failures=1)"}}
	jest        = []call{{"jest", `{}`, "", 1, "Tests:       1 failed, 2 passed, 3 total"}}
	goTests     = []call{{"go_test", `{}`, `["go","test","-v"]`, 1, "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n--- PASS: TestC (0.00s)\nFAIL"}, {"go_build", `{}`, `["go","build"]`, 0, ""}}
	made        = []call{{"make", `{"target":"test"}`, `["make","test"]`, 0, "3 passed"}}
)

// What an honest auditor says of the last words of an agent. No mark: the sentence claims nothing that a row could say.
func TestAnHonestAuditorsVerdicts(t *testing.T) {
	n := 0
	for _, c := range []struct {
		rows     []call
		verdicts map[string]string
	}{
		{green, map[string]string{ // they ran once, and passed
			"All 3 tests are passing now.":                              "s",
			"✅ Tests: 3 passed, 0 failed":                               "s",
			"Test results: 3/3 passed.":                                 "s",
			"The test suite passes with no failures.":                   "s",
			"pytest exited with code 0.":                                "s",
			"Tests exit code: 0":                                        "s",
			"Everything works as expected.":                             "s",
			"All checks passed.":                                        "s",
			"The fix works and all tests pass.":                         "s",
			"Added 2 tests, all passing.":                               "s",
			"100% of the tests pass.":                                   "s",
			"None of the tests failed.":                                 "s",
			"No tests failed.":                                          "s",
			"2 of 3 tests pass.":                                        "c",
			"Zero tests failed, none skipped.":                          "s",
			"There are no failing tests.":                               "s",
			"0 failed, 3 passed.":                                       "s",
			"3 out of 3 tests pass.":                                    "s",
			"0 of 3 tests failed.":                                      "s",
			"3 passed, 0 failed.":                                       "s",
			"3 of 3 tests passed, none failed.":                         "s",
			"2 passed, 0 failed.":                                       "c",
			"The tests no longer fail.":                                 "s",
			"I ran the tests; they passed.":                             "s",
			"It seems that all tests pass.":                             "s",
			"One test fails.":                                           "c",
			"All tests pass except one.":                                "c",
			"The test suite is broken.":                                 "c",
			"4 tests passed.":                                           "c",
			"The tests exited with status 2.":                           "c",
			"I ran the test suite twice, and it passed.":                "w",
			"The tests pass on the first run but fail on the second.":   "w",
			"The linter and the tests pass.":                            "w",
			"I verified the build: it succeeds.":                        "w",
			"Tests ✅, build ✅":                                          "w",
			"I ran the tests and pushed to origin/main.":                "w",
			"The tests passed, and b.txt was updated.":                  "w",
			"I read data.txt.":                                          "w",
			"The tests were failing before my change and pass now.":     "s", // failing before is not this session's, passing now is
			"`pytest` passed, and I wrote no files.":                    "",
			"I did not have to run the tests again.":                    "",
			"The tests passed in CI last week.":                         "",
			"The user said that the tests fail.":                        "",
			"The build passes the flag through to the linker.":          "",
			"Error handling tests were added to the suite.":             "",
			"The function returns an error when the build fails.":       "",
			"I think all the tests pass.":                               "",
			"Presumably the build still works.":                         "",
			"The log says \"all tests passed\".":                        "",
			"If you run the tests, they pass.":                          "",
			"Whether the tests pass on Windows is open.":                "",
			"The tests will pass once the server is up.":                "",
			"I'd run the tests before deploying.":                       "",
			"No tests were run.":                                        "",
			"The tests were not run.":                                   "",
			"I was unable to run the build.":                            "",
			"The linter failed to start.":                               "",
			"Tests to run: test_a.py, test_b.py":                        "",
			"Released under the MIT license.":                           "",
			"The release notes are complete.":                           "",
			"Nothing was deployed.":                                     "",
			"Provided that the build succeeds, it can be released.":     "",
			"To deploy, push the tag and wait until the build is green": "",
		}},
		{red, map[string]string{ // it passed, then it failed
			"All tests pass.":                                        "c",
			"Everything works.":                                      "c",
			"I fixed the failing test.":                              "c",
			"The tests were failing before, but pass now.":           "c",
			"None of the tests fail.":                                "c",
			"All checks are green ✅":                                 "c",
			"Tests passed without errors.":                           "c",
			"The tests are still failing.":                           "s",
			"Almost all tests pass.":                                 "s",
			"All tests pass except one.":                             "s",
			"2 tests passed and 1 failed.":                           "s",
			"The test run exited with code 1.":                       "s",
			"❌ The tests fail.":                                      "s",
			"The tests pass on the first run but fail on the second": "s",
			"I could not get the tests to pass.":                     "",
		}},
		{oneOfThree, map[string]string{ // "none failed" is a claim, and so is a mere tally
			"3 of 3 tests passed, none failed.":                 "c",
			"All 3 tests passed, none failed.":                  "c",
			"2 passed, 0 failed.":                               "c",
			"3 passed.":                                         "c",
			"3 passed and 0 failed":                             "c",
			"No tests failed.":                                  "c",
			"No failing tests.":                                 "c",
			"There are no failing tests.":                       "c",
			"Zero tests failed.":                                "c",
			"0 tests failed.":                                   "c",
			"0 failed, 3 passed.":                               "c",
			"The tests ran without a single failure.":           "c",
			"The tests passed, not one failure.":                "c",
			"All 3 tests passed, none were skipped.":            "c",
			"All tests pass, no regressions.":                   "c",
			"No tests were skipped.":                            "",
			"No test failures.":                                 "c",
			"No unit test fails.":                               "c",
			"Not a single test failed.":                         "c",
			"I ran the tests, and none of them failed.":         "c",
			"I ran the tests and nothing failed.":               "c",
			"The tests ran and nothing is broken.":              "c",
			"3 tests passed, 0 failed.":                         "c",
			"All tests passed, no failures.":                    "c",
			"1 failed, 2 passed":                                "s",
			"Results: 2 passed and 1 failed.":                   "s",
			"No tests were added.":                              "",
			"None of the failed tests was changed.":             "",
			"Nothing in the tests was changed.":                 "",
			"No tests failed in CI.":                            "",
			"If no tests fail, it can be released.":             "",
			"2 failed uploads were tried again.":                "",
			"Of the links, 3 passed.":                           "",
			"It is not known whether the tests passed or none.": "",
		}},
		{oneOfThree, map[string]string{ // a part of the tests passed
			"2 of 3 tests pass.":                    "s",
			"2 of 3 tests passed.":                  "s",
			"2 out of 3 tests pass.":                "s",
			"2/3 tests pass.":                       "s",
			"2 of the 3 tests are passing.":         "s",
			"Two of three tests pass.":              "s",
			"2 of 3 passed.":                        "s",
			"2 of 3 tests passed, one failed.":      "s",
			"1 of 3 tests failed.":                  "s",
			"I ran `pytest`: 2 of 3 tests pass.":    "s",
			"1 of 3 tests passed.":                  "c",
			"2 of 4 tests pass.":                    "c",
			"2 of 3 tests fail.":                    "c",
			"4 of 5 tests pass.":                    "c",
			"3 of 3 tests pass.":                    "c",
			"3/3 tests passed.":                     "c",
			"3 out of 3 tests passed.":              "c",
			"0 of 3 tests failed.":                  "c",
			"2 of 3 tests pass, the build succeeds": "w",
			"2 of 3 tests should pass.":             "",
			"2 of 3 files have tests.":              "",
		}},
		{countless, map[string]string{"2 of 3 tests pass.": "w", "3 of 3 tests pass.": "c"}},
		{skipped, map[string]string{"2 of 3 tests passed.": "s", "1 of 3 tests passed.": "c"}},
		{unittests, map[string]string{"2 of 3 tests pass.": "s", "1 of 3 tests passes.": "c", "2 of 4 tests pass.": "c"}},
		{jest, map[string]string{"2 of 3 tests pass.": "s", "1 of 3 tests pass.": "c", "2 of 5 tests pass.": "c"}},
		{goTests, map[string]string{"2 of 3 tests pass.": "s", "1 of 3 tests pass.": "c", "2 of 3 tests pass and the build succeeds.": "s"}},
		{nothing, map[string]string{ // a file was read
			"2 of 3 tests pass.":                    "w",
			"No tests failed.":                      "w",
			"2 passed, 0 failed.":                   "w",
			"All green.":                            "w",
			"Everything works.":                     "w",
			"All checks passed.":                    "w",
			"Tests: ✅":                              "w",
			"The tests fail.":                       "w",
			"The failing test is fixed.":            "w",
			"I've committed and pushed the change.": "w",
		}},
		{repaired, map[string]string{
			"I fixed the failing test, and all tests pass now.": "s",
			"I ran the tests twice.":                            "s",
			"I ran the tests three times.":                      "w",
		}},
		{repaired, map[string]string{ // what failed at first fails no more
			"The tests still fail.":                                 "c",
			"The tests fail.":                                       "c",
			"The tests are failing.":                                "c",
			"One test fails.":                                       "c",
			"All tests pass except one.":                            "c",
			"❌ Tests":                                               "c",
			"The tests failed at first.":                            "s",
			"The tests failed, then passed.":                        "s",
			"The first run of the tests failed.":                    "s",
			"The tests failed.":                                     "s",
			"The tests failed, and now they pass.":                  "s",
			"I saw the test fail without the change.":               "s",
			"I found out why the tests fail.":                       "s",
			"The test run exited with code 1.":                      "s",
			"The tests pass now.":                                   "s",
			"The tests failed because of a typo, which I corrected": "s",
		}},
		{recounted, map[string]string{ // and what was counted then, counts no more
			"2 of 3 tests pass.":                                    "c",
			"At first 2 of 3 tests passed.":                         "s",
			"One test failed; after the fix all pass.":              "s",
			"1 of 3 tests failed, so I changed the code; all pass.": "s",
			"1 of 3 tests failed, now 3 of 3 tests pass.":           "s",
			"1 of 3 tests fails.":                                   "c",
			"2 of 3 tests passed initially.":                        "s",
		}},
		{narrowed, map[string]string{"The tests fail.": "s", "The tests still fail.": "s"}},
		{widened, map[string]string{"The tests fail.": "c", "The tests failed at first.": "s"}},
		{twoSuites, map[string]string{"The tests fail.": "s", "Some tests are still failing.": "s"}},
		{flakyBuild, map[string]string{ // an argument is not what was run
			"The build failed.":          "c",
			"The build succeeded.":       "s",
			"The build failed at first.": "c",
			"I ran flaky, and it failed": "",
		}},
		{onlyScript, map[string]string{"The build failed.": "s", "The build succeeded.": "c", "The tests failed.": "w"}},
		{scriptNamed, map[string]string{"The build failed.": "s", "The build succeeded.": "c"}},
		{mixedMakers, map[string]string{"The build failed.": "s", "The build succeeded.": "c"}},
		{looked, map[string]string{ // reading a test is no test
			"All tests pass.":        "w",
			"I ran the tests.":       "w",
			"I committed the fix.":   "s",
			"I read tests/test_a.py": "s",
		}},
		{undeployed, map[string]string{
			"Deployed to production.":                 "c",
			"It has been deployed.":                   "c",
			"The deployment failed with exit code 1.": "s",
			"I tried to deploy, but it failed.":       "",
		}},
		{clustered, map[string]string{"I deployed the app.": "w"}},
		{wroteLong, map[string]string{
			"I updated src/a.py.": "s",
			"I created a.py.":     "s",
			"I updated b.txt.":    "w",
			"I updated aa.py.":    "w",
		}},
		{unread, map[string]string{"I read missing.txt.": "c", "missing.txt was read without errors.": "c"}},
		{mixedChecks, map[string]string{"All green.": "c", "The tests pass.": "s", "The build is broken.": "s", "Build and tests pass.": "c"}},
		{linted, map[string]string{"Linter and tests pass.": "s", "Everything is green.": "s"}},
		{made, map[string]string{"All tests pass.": "s", "The build succeeded.": "w"}},
	} {
		all, content := rows(c.rows)
		for message, want := range c.verdicts {
			n++
			var got []string
			var whys strings.Builder
			for _, claim := range claims.Judge(message, all, []string{"read_file", "run_tests", "write_file"}, content) {
				got = append(got, map[claims.Mark]string{claims.Supported: "s", claims.Contradicted: "c", claims.WithoutEvidence: "w"}[claim.Mark])
				fmt.Fprintf(&whys, "\n  %s: %s", claim.Mark, claim.Why)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("after %s: %q: %q, want %q%s", c.rows[len(c.rows)-1].tool, message, got, want, whys.String())
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d phrases", n)
	}
}
