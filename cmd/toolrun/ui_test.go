package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolrun/archive"
)

// newUI serves a record without calls under the word "word".
func newUI(t *testing.T) (*ui, *httptest.Server) {
	t.Helper()
	dir := t.TempDir()
	w, err := archive.Open(dir, archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := archive.Open(dir, archive.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	a := &app{stdout: io.Discard, stderr: io.Discard, lookupEnv: func(string) (string, bool) { return "", false }, now: time.Now, mask: unmasked}
	u := &ui{app: a, dir: d, limit: 10, word: "word", ending: context.Background()}
	s := httptest.NewServer(nil)
	t.Cleanup(s.Close)
	u.host = s.Listener.Addr().String()
	s.Config.Handler = u.handler()
	return u, s
}

func get(t *testing.T, s *httptest.Server, path, host string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

func TestTheLivePageIsOnlyForWhoHasItsAddress(t *testing.T) {
	u, s := newUI(t)
	object := strings.Repeat("a", 64)
	for _, c := range []struct {
		path, host string
		status     int
	}{
		{"/word/", "", http.StatusOK},
		{"/", "", http.StatusNotFound},
		{"/other/", "", http.StatusNotFound},
		{"/word/object/" + object, "", http.StatusInternalServerError}, // it is not there
		{"/word/object/../../ledger.jsonl", "", http.StatusNotFound},
		{"/word/object/%2e%2e%2fledger.jsonl", "", http.StatusNotFound},
		{"/word/", "rebound.example:80", http.StatusMisdirectedRequest},
		{"/word/changes?seen=x", "rebound.example", http.StatusMisdirectedRequest},
	} {
		if status, _, _ := get(t, s, c.path, c.host); status != c.status {
			t.Errorf("%s as %q: status %d, want %d", c.path, c.host, status, c.status)
		}
	}
	res, err := http.Post("http://"+u.host+"/word/", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", res.StatusCode)
	}
}

func TestTheLivePageLoadsNothingAndRunsOnlyItsOwnScript(t *testing.T) {
	_, s := newUI(t)
	_, header, body := get(t, s, "/word/", "")
	if !strings.Contains(body, `content="default-src 'none'; style-src 'nonce-`) || !strings.Contains(body, "No calls.") {
		t.Errorf("the page is %.600s", body)
	}
	for key, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"} {
		if got := header.Get(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

func TestTheLivePageHearsOfAChange(t *testing.T) {
	u, s := newUI(t)
	before := u.state()
	if _, _, now := get(t, s, "/word/changes?seen=", ""); now != before {
		t.Errorf("state %q, want %q", now, before)
	}
	heard := make(chan string, 1)
	go func() {
		_, _, now := get(t, s, "/word/changes?seen="+before, "")
		heard <- now
	}()
	if err := os.WriteFile(filepath.Join(u.dir.Path(), "ledger.jsonl"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if now := <-heard; now == before || now != u.state() {
		t.Errorf("heard of %q after %q", now, before)
	}
}
