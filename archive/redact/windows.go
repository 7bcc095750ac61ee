package redact

// hash of the lower 3 bytes of v.
func hash(v uint32) uint32 { return v << 8 * 0x9E3779B1 >> (32 - hashBits) }

// triple is 3 bytes as the search sees them.
func triple(b []byte) uint32 {
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16) | foldAll&0xFFFFFF
}

// shortWindows returns the windows of an anchor of 2 or 3 bytes, which reach over its end or its begin.
func shortWindows(a *anchor) []ref {
	var list []ref
	add := func(off int32, x, y, z byte) { list = append(list, ref{triple([]byte{x, y, z}), off, a}) }
	after := folds(a.after)
	if len(a.lit) == 3 {
		add(0, a.lit[0], a.lit[1], a.lit[2])
	} else {
		for _, c := range after {
			add(0, a.lit[0], a.lit[1], c)
		}
	}
	switch {
	case a.front != nil:
		for _, c := range folds(a.front) {
			add(-1, c, a.lit[0], a.lit[1])
		}
	case len(a.lit) == 3:
		for _, c := range after {
			add(1, a.lit[1], a.lit[2], c)
		}
	default:
		for _, c := range after {
			for _, d := range after {
				add(1, a.lit[1], c, d)
			}
		}
	}
	return list
}

// folds returns the bytes of the set, or all, without regard to case.
func folds(set *[256]bool) (list []byte) {
	var seen [256]bool
	for c := range 256 {
		if f := byte(c) | 0x20; (set == nil || set[c]) && !seen[f] {
			seen[f] = true
			list = append(list, f)
		}
	}
	return list
}

// rarestWindows returns the even and the odd offset in lit, which has 4 bytes at least, where the rarest windows stand.
func rarestWindows(lit []byte) (even, odd int) {
	best, most := [2]int{}, [2]int{-1, -1}
	for i := 0; i+3 <= len(lit) && i < 16; i++ {
		if r := rarity(lit[i:]); r > most[i%2] {
			best[i%2], most[i%2] = i, r
		}
	}
	return best[0], best[1]
}

func cases(c byte, fold bool) []byte {
	if fold && 'a' <= c && c <= 'z' {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
