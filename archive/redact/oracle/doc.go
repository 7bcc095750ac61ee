// Package oracle holds archive/redact against gitleaks itself, whose rules it uses: run `go test` here, and
// `go generate ./archive/redact` to take over the rules of the version that go.mod names. It is a module of its own, so
// that toolrun does not depend on gitleaks and the eighty modules behind it.
package oracle
