package evidence

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func receiptOf(t testing.TB, p *folder, index int64) *Receipt {
	t.Helper()
	key := p.key()
	c, err := Newest(p.dir, key)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReceipt(key, linesOf(p.read("ledger.jsonl"))[index], index, c, h(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReceiptIsCheckedByItsText(t *testing.T) {
	for n := 1; n < 40; n++ {
		p := newFolder(t, n)
		p.mustSign()
		for i := range int64(n) {
			text := receiptOf(t, p, i).String()
			r, err := ParseReceipt(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Verify(p.key()); err != nil || r.String() != text || r.Line != fmt.Sprintf(`{"seq":%d}`, i) {
				t.Fatalf("%d of %d: %v\n%s", i, n, err, text)
			}
		}
	}
}

// The proof in the receipt is a C2SP tlog-proof: read here by its specification, with nothing of this package.
func TestProofIsTheOneOfTheSpecification(t *testing.T) {
	p := newFolder(t, 13)
	p.mustSign()
	text := receiptOf(t, p, 9).String()
	_, proof, ok := strings.Cut(text, "\n\nc2sp.org/tlog-proof@v1\nindex 9\n")
	hashes, signed, ok2 := strings.Cut(proof, "\n\n")
	if !ok || !ok2 {
		t.Fatal(text)
	}
	var path tlog.RecordProof
	for line := range strings.SplitSeq(hashes, "\n") {
		h, err := tlog.ParseHash(line)
		if err != nil {
			t.Fatal(err)
		}
		path = append(path, h)
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(p.read(PublicKeyName)))
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(verifier))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(n.Text, "\n")
	root, err := tlog.ParseHash(lines[2])
	if err != nil || lines[0] != verifier.Name() || lines[1] != "13" || len(lines) != 4 {
		t.Fatal(lines, err)
	}
	if err := tlog.CheckRecord(path, 13, root, 9, tlog.RecordHash([]byte(`{"seq":9}`))); err != nil {
		t.Error(err)
	}
}

func TestReceiptMayStandInOtherText(t *testing.T) {
	p := newFolder(t, 5)
	p.mustSign()
	text := receiptOf(t, p, 3).String()
	for _, wrapped := range []string{
		"Look:\n\n```\n" + text + "```\nDone.\n", strings.ReplaceAll(text, "\n", "\r\n"), text + "\n\n", strings.TrimSuffix(text, "\n"),
		strings.Replace(text, "index 3", "extra AAAA\nindex 3", 1), text + "— witness.example AAAAAAAAAAAA\n",
	} {
		r, err := ParseReceipt(wrapped)
		if err == nil {
			err = r.Verify(p.key())
		}
		if err != nil {
			t.Errorf("%v\n%s", err, wrapped)
		}
	}
	if _, err := ParseReceipt(text + text); err == nil {
		t.Error("of two receipts one was taken")
	}
}

// No receipt that differs in a byte proves anything else.
func TestChangedReceiptProvesNothing(t *testing.T) {
	p := newFolder(t, 9)
	p.mustSign()
	text := receiptOf(t, p, 4).String()
	for at := range len(text) {
		for _, edited := range []string{text[:at] + text[at+1:], text[:at] + "1" + text[at+1:], text[:at] + "A" + text[at:]} {
			r, err := ParseReceipt(edited)
			if err == nil {
				err = r.Verify(p.key())
			}
			if err == nil && r.Line != `{"seq":4}` {
				t.Fatalf("byte %d: %q is proved", at, r.Line)
			}
		}
	}
}

func TestForgedReceiptsAreRefused(t *testing.T) {
	p, other := newFolder(t, 9), newFolder(t, 9)
	p.mustSign()
	other.mustSign()
	good, theirs := receiptOf(t, p, 4), receiptOf(t, other, 4)
	for name, change := range map[string]func(*Receipt){
		"another row's proof":            func(r *Receipt) { r.Proof = receiptOf(t, p, 5).Proof },
		"another row's index":            func(r *Receipt) { r.Index = 5 },
		"another row":                    func(r *Receipt) { r.Line = `{"seq":5}` },
		"a checkpoint by another key":    func(r *Receipt) { r.Checkpoint = theirs.Checkpoint },
		"all by another key":             func(r *Receipt) { *r = *theirs },
		"another key's, under this name": func(r *Receipt) { *r = *theirs; r.KeyID = good.KeyID },
		"a longer proof":                 func(r *Receipt) { r.Proof = append(r.Proof[:len(r.Proof):len(r.Proof)], Hash{}) },
		"a shorter proof":                func(r *Receipt) { r.Proof = r.Proof[1:] },
		"an index behind the tree":       func(r *Receipt) { r.Index = 9 },
		"an inner node as the row": func(r *Receipt) { // RFC 6962 keeps leaves and nodes apart
			left, right := receiptOf(t, p, 4).Proof[0], LeafHash([]byte(r.Line))
			r.Line = "\x01" + string(right[:]) + string(left[:])
			r.Proof = r.Proof[1:]
		},
	} {
		r := *good
		change(&r)
		if err := r.Verify(p.key()); !errors.Is(err, ErrUnverified) {
			t.Errorf("%s: %v", name, err)
		}
		if parsed, err := ParseReceipt(r.String()); err == nil && parsed.Verify(p.key()) == nil {
			t.Errorf("%s: its text is taken", name)
		}
	}
}

func FuzzParseReceipt(f *testing.F) {
	p := newFolder(f, 9)
	p.mustSign()
	f.Add(receiptOf(f, p, 4).String())
	f.Add("toolrun-receipt@v1\nkey x\n{}\n\nc2sp.org/tlog-proof@v1\nindex 0\n\na\n0\nAAAA\n\n— a AAAA\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReceipt(text)
		if err != nil {
			return
		}
		again, err := ParseReceipt(r.String())
		if err != nil || again.String() != r.String() {
			t.Errorf("%v: %q came back as %q", err, r.String(), again)
		}
	})
}

func FuzzFindNotes(f *testing.F) {
	p := newFolder(f, 3)
	f.Add(p.mustSign().Note)
	f.Add("x\ntoolrun: checkpoint a 1 " + emptyTree().Hash.String() + " AAAA\n\n— \n— a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range FindNotes(text) {
			if again := FindNotes(n.Signed); len(again) != 1 || again[0].Signed != n.Signed {
				t.Errorf("%q is not found in itself", n.Signed)
			}
		}
	})
}

func TestCheckpointsAreFoundInAnyText(t *testing.T) {
	p := newFolder(t, 3)
	a := p.mustSign()
	p.grow(2)
	b := p.mustSign()
	text := "level=INFO msg=x\ntoolrun: " + a.OneLine() + "\n" + strings.ReplaceAll("\n> quoted\n\n"+b.Note, "\n", "\r\n") + "\nend\n" + p.read(CheckpointsName)
	found := FindNotes(text)
	if len(found) != 5 {
		t.Fatalf("%d found", len(found))
	}
	for i, want := range []int64{3, 5, 0, 3, 5} {
		if found[i].Checkpoint.Tree.N != want || found[i].Verify(p.key()) != nil {
			t.Errorf("%d: %v", i, found[i])
		}
	}
	if found[0].Signed != a.Note {
		t.Errorf("%q", found[0].Signed)
	}
}

func TestPrivateKeyIsForItsOwnerAndInNoError(t *testing.T) {
	p := newFolder(t, 1)
	p.mustSign()
	secret := strings.TrimSpace(p.read(KeyName))
	p.write(KeyName, secret[:len(secret)-4]+"AAAA")
	p.grow(1)
	_, err := p.sign()
	if err == nil || strings.Contains(err.Error(), secret[len(secret)-20:len(secret)-6]) {
		t.Error(err)
	}
}

func BenchmarkVerifyReceipt(b *testing.B) {
	p := newFolder(b, 100_000)
	p.mustSign()
	text, key := receiptOf(b, p, 77_777).String(), p.key()
	for b.Loop() {
		r, err := ParseReceipt(text)
		if err == nil {
			err = r.Verify(key)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if each := b.Elapsed() / time.Duration(b.N); each > time.Millisecond {
		b.Errorf("goal missed: a receipt takes %v to check, and 1ms was the most", each)
	}
}
