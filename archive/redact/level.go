package redact

import "bytes"

// claim is what a JSON key says of its value.
type claim struct {
	kind kind
	weak bool // the key has other meanings, too: "pass": 12
	many bool // the key is a plural: in an object, each value is meant
}

// claimOf reads a key.
func claimOf(key []byte) (c claim) {
	if len(key) > nameBefore+nameBehind {
		return c
	}
	c.kind = kindOf(key)
	if c.kind == isPublic {
		return c
	}
	name := string(bytes.ToLower(key))
	c.weak = name == "pass" || name == "pw" || c.kind == isAuth && !bytes.HasSuffix([]byte(name), []byte("authorization"))
	c.many = name[len(name)-1] == 's' && name != "pass"
	return c
}

// secret tells whether a string that the claim is made of is a secret.
func (c claim) secret(v []byte) bool {
	switch {
	case c.kind == isPublic || !given(v, c.kind):
		return false
	case c.weak:
		return made(v) || c.kind == isPassword && chosen(v) || pair(v) != nil
	}
	return true
}

// password tells whether a number is one: those of tokens are counts.
func (c claim) password(v []byte) bool { return c.kind == isPassword && !c.weak && number(v, 4) }

// level is an object or an array that the walk is in.
type level struct {
	object bool
	all    claim  // what the key of the whole says of its values
	key    claim  // what the last key says of its value
	named  bool   // the last key is one of names
	pair   claim  // what {"name": "DB_PASSWORD", … said of "value"
	option option // of the strings of an array
}

// Keys of lists of pairs, and keys whose values are no secrets among credentials.
var (
	pairNames  = set("name key header variable field parameter param option env")
	pairValues = set("value val content default secretvalue stringvalue")
	plainKeys  = set("type kind name id user username login email account host hostname port url uri endpoint region zone namespace scope scopes " +
		"expires expiry expiration expiresat expires_at expires_in issuer provider path file source created updated version description label domain samesite")
)

// enter takes notice of a key.
func (l *level) enter(key []byte) {
	l.key = claimOf(key)
	l.named = false
	if l.key.kind != isPublic || len(key) > maxWord {
		return
	}
	name := bytes.ToLower(key)
	switch {
	case pairNames[string(name)]:
		l.named = true
	case pairValues[string(name)]:
		l.key = l.pair
	}
	if l.key.kind == isPublic && !plainKeys[string(name)] {
		l.key = l.all
	}
}

// pairWith takes notice of a string value: it may be the name of another value.
func (l *level) pairWith(v []byte) {
	if l.named {
		l.pair = claimOf(v)
	}
}

// says is what the next value is.
func (l *level) says() claim {
	if l.object {
		return l.key
	}
	return l.all
}

// inside returns the level of an object or array that is the next value.
func (l *level) inside(object bool) level {
	c := l.says()
	if object && (!c.many || !l.object) {
		c = claim{}
	}
	return level{object: object, all: c}
}
