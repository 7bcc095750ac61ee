package jsonl

import (
	"errors"
	"fmt"
)

// Unavailable makes err an ErrUnavailable, unless it is one: its text says so once.
func Unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
