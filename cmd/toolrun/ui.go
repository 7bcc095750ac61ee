package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"toolrun/archive"
)

func (a *app) uiCmd() *cobra.Command {
	var port, limit int
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve the report on loopback, live: the page follows the record.",
		Long: "Serve the report on loopback, live: the page follows the record until this command is interrupted.\n" +
			"It is for who has the address that is printed, which holds a random word, and it changes nothing.",
		Example:     "  toolrun ui --since 1d",
		Args:        cobra.NoArgs,
		Annotations: exitsAlso(statusData, statusInterrupted),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usagef(cmd, "--limit %d: at least 1", limit)
			}
			if port < 0 || port > 65535 {
				return usagef(cmd, "--port %d: from 0 to 65535", port)
			}
			d, err := a.openForReading()
			if err != nil {
				return err
			}
			if err := a.meanSession(d); err != nil {
				return err
			}
			in := catchSignals(cmd.Context())
			defer in.stop()
			listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				return fmt.Errorf("serve the page: %w", err)
			}
			u := &ui{app: a, dir: d, limit: limit, host: listener.Addr().String(), word: rand.Text(), ending: in.ctx}
			if err := a.say("http://%s/%s/", u.host, u.word); err != nil {
				return errors.Join(err, listener.Close())
			}
			return errors.Join(u.serve(in.ctx, listener), in.err())
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1 (default: a free one)")
	cmd.Flags().IntVar(&limit, "limit", defaultPageCalls, "calls that are told in full, the newest")
	return cmd
}

// ui serves the page to who knows the word in its address.
type ui struct {
	app    *app
	dir    *archive.Dir
	limit  int
	host   string
	word   string
	ending context.Context
}

// How long things take at most.
const (
	uiHeaders = 10 * time.Second       // reading a request
	uiChanges = 25 * time.Second       // one question for changes that finds none
	uiLook    = 500 * time.Millisecond // between two looks at the record
)

func (u *ui) serve(ctx context.Context, listener net.Listener) error {
	s := &http.Server{Handler: u.handler(), ReadHeaderTimeout: uiHeaders}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler answers GET only, under the word, and to the name that was printed: a page of elsewhere that reaches the port
// by a name of its own (DNS rebinding) gets nothing.
func (u *ui) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /"+u.word+"/{$}", u.page)
	mux.HandleFunc("GET /"+u.word+"/changes", u.changes)
	mux.HandleFunc("GET /"+u.word+"/object/{hash}", u.object)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(u.host)
		if r.Host != u.host && r.Host != "localhost:"+port {
			http.Error(w, "this page has another name", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		w.Header().Set("X-Frame-Options", "DENY")
		mux.ServeHTTP(w, r)
	})
}

func (u *ui) page(w http.ResponseWriter, _ *http.Request) {
	p, _, err := u.app.makePage(u.dir, pageOptions{limit: u.limit, live: true, state: u.state(), link: func(hash string) string { return "object/" + hash }})
	var out bytes.Buffer
	if err == nil {
		err = p.write(&out)
	}
	if err != nil {
		u.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(out.Bytes())
}

// changes answers with the state of the record, at once where it is not the one that the page has seen, else when it
// changes or after uiChanges.
func (u *ui) changes(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	seen, end := r.URL.Query().Get("seen"), time.After(uiChanges)
	look := time.NewTicker(uiLook)
	defer look.Stop()
	for {
		if now := u.state(); now != seen {
			io.WriteString(w, now)
			return
		}
		select {
		case <-look.C:
		case <-end:
			io.WriteString(w, seen)
			return
		case <-r.Context().Done():
			return
		case <-u.ending.Done():
			http.Error(w, "toolrun ui ends", http.StatusServiceUnavailable)
			return
		}
	}
}

// state names what the page shows of the record: the sizes of the ledger and of the traces of living runs.
func (u *ui) state() string {
	total := fileSize(filepath.Join(u.dir.Path(), "ledger.jsonl"))
	traces := int64(0)
	markers := u.dir.Markers()
	for id := range markers {
		traces += fileSize(u.dir.RunPath(id))
	}
	return fmt.Sprintf("%d-%d-%d", total, traces, len(markers))
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// object answers with a stored object that matches its hash, as text that no browser runs.
func (u *ui) object(w http.ResponseWriter, r *http.Request) {
	hash := r.PathValue("hash")
	if !hashName.MatchString(hash) {
		http.NotFound(w, r)
		return
	}
	if err := u.dir.Store.Verify(hash); err != nil {
		u.fail(w, err)
		return
	}
	f, err := u.dir.Store.Open(hash)
	if err != nil {
		u.fail(w, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	io.Copy(w, f)
}

// fail answers with an error in the words of the command line.
func (u *ui) fail(w http.ResponseWriter, err error) {
	u.app.logger().Error("the page cannot be made", "err", err)
	http.Error(w, escape(u.app.mask(err.Error())), http.StatusInternalServerError)
}
