package month

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ErrSpace means that a part would take more space than it may.
var ErrSpace = errors.New("not enough free space")

// Free is how much space the file system of a path has for users; some do not tell.
func Free(path string) (bytes int64, known bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil || st.Blocks == 0 {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}
