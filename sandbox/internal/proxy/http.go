package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
)

// newHTTP makes the HTTP side: a server for clients, and what carries their plain requests on.
func (s *Server) newHTTP() (*http.Server, *http.Transport) {
	quiet := log.New(io.Discard, "", 0)
	plain := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			c, err := s.connectTo(ctx, address)
			if err != nil {
				return nil, err // a nil *conn is no nil net.Conn
			}
			return c, nil
		},
		DisableCompression: true, // answers pass as they are
		IdleConnTimeout:    idleTimeout, MaxIdleConns: maxOpen / 4, MaxResponseHeaderBytes: maxReply,
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			// RFC 9112 §3.2.2: the target counts, and not what the client wrote into Host.
			r.Out.Host = r.In.URL.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v, ok := r.In.Header[h]; ok {
					r.Out.Header[h] = v
				}
			}
		},
		Transport:     plain,
		FlushInterval: -1,
		ErrorLog:      quiet,
		ErrorHandler:  func(w http.ResponseWriter, r *http.Request, err error) { sayNo(w, r.URL.Host, err) },
	}
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch err := s.fault(r); {
			case err != nil:
				sayNo(w, r.URL.Host, err)
			case r.Method == http.MethodConnect:
				s.serveConnect(w, r)
			default:
				forward.ServeHTTP(w, r)
			}
		}),
		BaseContext:                  func(net.Listener) context.Context { return s.ctx },
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            handshake,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     quiet,
	}, plain
}

// errNotProxied is for requests that name no host.
var errNotProxied = errors.New("this is a proxy: it serves CONNECT HOST:PORT and http:// URLs")

// fault tells why a request is refused whatever the rules say.
func (s *Server) fault(r *http.Request) error {
	u := r.URL
	port, _ := strconv.Atoi(u.Port())
	switch {
	case u.Host == "":
		return errNotProxied
	case u.User != nil:
		return s.refuse(u.Hostname(), port, "a user name in the address")
	case r.Method == http.MethodConnect:
		if u.Path != "" || u.RawQuery != "" {
			return errNotProxied
		}
	case u.Scheme != "http":
		return s.refuse(u.Hostname(), port, strconv.Quote(clip(u.Scheme))+" without CONNECT")
	}
	return nil
}

// connectTo connects to "host:port".
func (s *Server) connectTo(ctx context.Context, address string) (*conn, error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return nil, s.refuse(address, 0, "no port")
	}
	port, err := parsePort(p)
	if err != nil {
		port = 0
	}
	return s.connect(ctx, host, port)
}

// serveConnect makes a tunnel of a connection.
func (s *Server) serveConnect(w http.ResponseWriter, r *http.Request) {
	to, err := s.connectTo(r.Context(), r.URL.Host)
	if err != nil {
		sayNo(w, r.URL.Host, err)
		return
	}
	nc, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		to.Close()
		return
	}
	// What our listener accepted.
	s.tunnel(nc.(*conn), buffered.Reader, to, "HTTP/1.1 200 Connection established\r\n\r\n")
}

// sayNo answers with the reason, for whoever reads the client's output.
func sayNo(w http.ResponseWriter, host string, err error) {
	status := http.StatusBadGateway
	switch no := (*refusal)(nil); {
	case errors.Is(err, errBusy):
		status = http.StatusServiceUnavailable
	case errors.Is(err, errNotProxied):
		status = http.StatusBadRequest
	case errors.As(err, &no):
		status = http.StatusForbidden
	}
	if e := (*url.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	text := "toolrun: " + err.Error()
	if host != "" {
		text = "toolrun: " + clip(host) + ": " + err.Error()
	}
	w.Header().Set("X-Proxy-Error", text) // clients show no body of an answer to CONNECT
	http.Error(w, text, status)
}
