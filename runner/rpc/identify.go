package rpc

import (
	"cmp"
	"sync"

	"toolrun/runner"
)

// sessionVariables are those of the launch environment that name the session, in the order they count.
var sessionVariables = []string{"TOOLRUN_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "QWEN_CODE_SESSION_ID"}

// Variables of the launch environment for what is the same in all calls of a loop; empty and over-long ones are not told.
const (
	modelVariable    = "TOOLRUN_MODEL"
	providerVariable = "TOOLRUN_PROVIDER"
)

// told is a variable that names something, else "".
func told(getenv func(string) string, name string) string {
	if v := getenv(name); len(v) <= maxNameBytes {
		return v
	}
	return ""
}

// identified is who the client is, as far as it need not say so in each request.
type identified struct {
	session, sessionFrom string // of the launch; frozen
	model, provider      string // of the launch; frozen

	mu               sync.Mutex
	client, protocol string              // told by initialize
	asksUser         bool                // the client said there that it can ask its user
	announced        map[string]struct{} // sessions that the backend was told of
}

// launched keeps what the launch environment says. The session is from "run" where it names none.
func (w *identified) launched(getenv func(string) string) {
	w.model, w.provider = told(getenv, modelVariable), told(getenv, providerVariable)
	w.sessionFrom = "run"
	for _, name := range sessionVariables {
		if w.session = told(getenv, name); w.session != "" {
			w.sessionFrom = "env"
			return
		}
	}
}

// initialize keeps what the handshake told and agreed on.
func (w *identified) initialize(client string, elicits bool, protocol string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.client, w.protocol, w.asksUser = client, protocol, elicits
}

// elicits says whether the client of the handshake can ask its user.
func (w *identified) elicits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asksUser
}

// origin completes what a request says of itself; handshake: it belongs to the session that began with initialize.
func (w *identified) origin(o runner.Origin, handshake bool) runner.Origin {
	o.SessionFrom = "meta"
	if o.SessionID == "" {
		o.SessionID, o.SessionFrom = w.session, w.sessionFrom
	}
	o.Model, o.Provider = cmp.Or(o.Model, w.model), cmp.Or(o.Provider, w.provider)
	if handshake {
		w.mu.Lock()
		defer w.mu.Unlock()
		o.Protocol = w.protocol
		o.Client = cmp.Or(o.Client, w.client)
	}
	return o
}

// maxAnnounced bounds the memory of sessions that were announced; the backend remembers them too.
const maxAnnounced = 4096

// announce tells the backend of a session it was not told of. Callers that come at the same time wait for each other, so
// that a session line is there before the first call's. A line that cannot be written is tried again at the next request:
// the call that comes with it cannot be recorded either, and is answered so.
func (w *identified) announce(b Backend, o runner.Origin) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.announced[o.SessionID]; ok {
		return nil
	}
	if err := b.Session(o); err != nil {
		return err
	}
	if w.announced == nil || len(w.announced) >= maxAnnounced {
		w.announced = make(map[string]struct{})
	}
	w.announced[o.SessionID] = struct{}{}
	return nil
}
