package redact

import (
	"bytes"
	stdbase64 "encoding/base64"
)

// jwtHeader is how long the header of a JSON Web Token may be.
const jwtHeader = 2 << 10

// webToken judges a JSON Web Token (RFC 7519): a header that says so, or two parts that begin like JSON.
func webToken(b []byte, at int, final bool) verdict {
	if !boundary(b, at) {
		return verdict{}
	}
	limit := min(len(b), at+jwtHeader)
	end := token.end(b[:limit], at)
	if end == at+jwtHeader {
		return verdict{}
	}
	if end == len(b) {
		return verdict{more: !final, from: at}
	}
	if end-at < 16 || b[end] != '.' {
		return verdict{}
	}
	const least = 17
	next := end + 1
	body := token68.end(b[:min(len(b), next+least)], next)
	if body == len(b) && body-next < least && !final {
		return verdict{more: true, from: at}
	}
	json := bytes.HasPrefix(b[next:], []byte("ey")) && body-next == least
	if body-next < 8 || !json && !saysAlgorithm(b[at:end]) {
		return verdict{}
	}
	return verdict{found: true, span: span{start: at, end: body, class: token68}}
}

// plainToken is the rule file's rule for JSON Web Tokens: two parts that begin with ey, of which nothing is decoded.
func plainToken(b []byte, at int, final bool) verdict {
	const least, most = 19, 256
	end := alnum.end(b[:min(len(b), at+most)], at)
	if end == len(b) && end-at < most && !final {
		return verdict{more: true, from: at}
	}
	if end-at < least || end == len(b) || b[end] != '.' {
		return verdict{}
	}
	body := run(tokenBody, b, end+1, least)
	if body == len(b) && body-end-1 < least && !final {
		return verdict{more: true, from: at}
	}
	if body-end-1 < least || !bytes.HasPrefix(b[end+1:], []byte("ey")) || entropy(b[at:body]) <= 3 {
		return verdict{}
	}
	return verdict{found: true, span: span{start: at, end: body, class: token68}}
}

var tokenBody = ranges("--//09AZ\\\\__az")

func saysAlgorithm(header []byte) bool {
	out := make([]byte, stdbase64.RawURLEncoding.DecodedLen(len(header)))
	n, err := stdbase64.RawURLEncoding.Decode(out, header)
	return err == nil && bytes.Contains(out[:n], []byte(`"alg"`))
}

// encodedKey judges base64 of a private key in PEM, as it stands in a Kubernetes secret.
func encodedKey(b []byte, at int, final bool) verdict {
	const look = 96
	end := base64.end(b[:min(len(b), at+look)], at)
	if end == len(b) && end-at < look && !final {
		return verdict{more: true, from: at}
	}
	if !bytes.Contains(decoded(b[at:end]), []byte("PRIVATE KEY-----")) {
		return verdict{}
	}
	return verdict{found: true, span: span{start: at, end: end, class: base64}}
}
