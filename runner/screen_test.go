package runner

import (
	"strings"
	"testing"

	"toolrun/archive/redact"
	"toolrun/catalog"
	"toolrun/runner/terminal"
)

func TestTheCatalogAndTheEmulatorAgreeOnTheLargestTerminal(t *testing.T) {
	if catalog.MaxTerminalRows != terminal.MaxRows || catalog.MaxTerminalCols != terminal.MaxCols {
		t.Error("they do not")
	}
}

func screenOf(max int, pieces ...string) *excerpt {
	e := newExcerpt(max)
	e.screen = &screen{rules: redact.New(nil), size: catalog.Terminal{Rows: 24, Cols: 80}}
	for _, p := range pieces {
		e.write([]byte(p))
	}
	return &e
}

func TestAScreenIsCutInItsTextAndSaysSo(t *testing.T) {
	coloured := strings.Repeat("\x1b[31mred\x1b[0m\r\n", 100)
	if p := screenOf(10000, coloured).render(400); p.Text != strings.Repeat("red\n", 100) || p.LeftOut != 0 {
		t.Errorf("%d bytes left out of %q", p.LeftOut, p.Text)
	}
	p := screenOf(10000, coloured).render(80)
	if want := strings.Repeat("red\n", 10) + "[toolrun: 324 bytes left out]\n" + strings.Repeat("red\n", 9); p.Text != want || p.LeftOut != 324 {
		t.Errorf("%d bytes left out, %q, want %q", p.LeftOut, p.Text, want)
	}
	p = screenOf(100, coloured, "\r\nthe end\r\n").render(400)
	if !strings.HasPrefix(p.Text, "red\n") || !strings.HasSuffix(p.Text, "red\n\nthe end\n") || p.LeftOut < int64(len(coloured))-200 {
		t.Errorf("%d bytes left out of %q", p.LeftOut, p.Text)
	}
}

func TestASecretThatAColourCutIsMaskedInTheText(t *testing.T) {
	secret := "gh" + "p_" + strings.Repeat("A", 36)
	if p := screenOf(1000, secret[:20]+"\x1b[1m"+secret[20:]+"\r\n").render(400); strings.Contains(p.Text, secret) {
		t.Errorf("%q", p.Text)
	}
}
