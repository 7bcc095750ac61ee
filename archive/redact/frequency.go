package redact

import "math/bits"

// pairFrequency tells how often a pair of bytes stands in source, documents and logs, letters in either case: a hexadecimal
// digit each, the binary logarithm of its share plus 20. Rows and columns are the groups of group.
const pairFrequency = "" +
	"6abb78a5a5acbc4a4cccaa88959b784646776ba776b653a94a54a639b6a33694974a75357759b786b66b95bb95c73a9b974582995756468779" +
	"a77ad766b96977a759a89767829c785878999bb9bcaba8999cbd8a9dcc7a9b949d8a9979aaaca577aa53b63978b72a89a343729b5925968889" +
	"9566c689a749699629a88533548a687758988ab355c433a64965a5296aa541637a574756777999bbaba5639baeba4acc6a382978465445764a" +
	"8122a2125132329312a3734120351602212549a576b56598985895389987616179564537a87ac87aca87c98b76b736aaa854946b689658b88a" +
	"b968c755a559a6ab2698964362795796268679b7bcc9c6b6987ac847cc9953848c886878989c9aac7a95959bbd9b1dbbaa97566b6756469678" +
	"c677c767a38a76ba4baba6548389584746977a23434211211343233443922112550503145536c99ad9a7c499abc83bbba964a29c796768989b" +
	"a8a7d87ab9bb99ab58cdc876a58c9aaaa9998bc799d86dc66998ca4cbbb788b5ac8a9878a9ac8c98b984a28bab693bbb453824773412334446" +
	"b667c665a3467787467655552398693436964894569449a135479529756663326846242576678686872481256559258a444553c95746368879" +
	"665676747178887b38994573334a67474787796232921371153272143222333545171214533599999944524664452466574b23ec8a6949ac9c" +
	"cbcbbb9ac78bbbcb7cdcabbb88cfa79abb91bd7786675665777667268876652489a30033001997a8888887588899389977753799587006935b" +
	"97a9769666386a5936a86575229a25b014321a445454334324353424453433217b30a597205b434455324223374324563422126c3120ab3048" +
	"868777797447776737886765237a6758295a4b98b99987a578999a59ba887736a72502379767545564435324455425564533246d330006303c" +
	"889788698557889838a878685482543108608bbabbab9ab7aaaaaa6bcbaa8986be89ca998baf"

const groups = 38

// group puts a byte, or what it is without regard to case, in one of the groups of pairFrequency.
func group(c byte) int {
	switch c |= 0x20; {
	case small(c):
		return int(c - 'a')
	case digit(c):
		return 26
	case c == 0x7f: // _
		return 34
	}
	const marks = " -./:=\"_,("
	for i := range len(marks) {
		if marks[i] == c {
			return 27 + i
		}
	}
	return 37
}

// weights are pairFrequency as shares, and what they sum up to by row.
var weights, sums = func() (w [groups][groups]int, sum [groups]int) {
	for i := range groups * groups {
		c := pairFrequency[i]
		if c >= 'a' {
			c -= 'a' - '0' - 10
		}
		w[i/groups][i%groups] = 1 << (c - '0')
		sum[i/groups] += 1 << (c - '0')
	}
	return w, sum
}()

// rarity ranks 3 bytes: the higher, the seldomer they stand in text.
func rarity(s []byte) int {
	a, b, c := group(s[0]), group(s[1]), group(s[2])
	return bits.LeadingZeros(uint(weights[a][b] * weights[b][c] * 256 / sums[b]))
}
