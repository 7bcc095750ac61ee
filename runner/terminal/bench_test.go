package terminal

import "testing"

func BenchmarkPlainOfAShortAnswer(b *testing.B) {
	for b.Loop() {
		Plain([]byte("ready> a42z\r\nready> "), 24, 80)
	}
}

func BenchmarkPlainOfAColouredAnswer(b *testing.B) {
	for b.Loop() {
		Plain([]byte("\x1b[1mready>\x1b[0m a42z\r\nready> "), 24, 80)
	}
}
